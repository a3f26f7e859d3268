"""Is a step true in this checkout? Files exist, overrides are accepted and read, tests are selected,
sizes fit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from proveout.domain.config.overrides import parse
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding, Severity
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, Step
from proveout.domain.tree import Tree
from proveout.loops.findings import finding, from_problems, parallel_problems, renamed
from proveout.loops.nemo_rl.functional import read_script
from proveout.loops.nemo_rl.runs import CommandRead, ResolvedRun, read_argv, resolve_argv
from proveout.loops.nemo_rl.side_effects import side_effects
from proveout.loops.nemo_rl.variants import renames
from proveout.loops.nemo_rl.verify_tests import extras, nearest_remedy, selection

_PASSED_ON = "policy.megatron_cfg.model_overrides."
"""NeMo-RL sets these on the Bridge's provider, whatever they are called."""
_SPARSE = ("vllm_zmq_sparse", "vllm_s3_sparse")


def verify(step: Step, context: LoopContext, tree: Tree) -> tuple[Finding, ...]:
    """Everything in ``step`` that the checkout would reject, ignore or not run."""
    if not step.command.argv:
        return ()
    read = read_argv([word.replace(ATTEMPT_DIR, "ATTEMPT") for word in step.command.argv])
    found = [*_missing(step, read, tree), *extras(step, read, tree)]
    if read.pytest:
        return (*found, *selection(step, read.pytest, tree))
    if found:
        return tuple(found)
    try:
        runs = resolve_argv(tree, read)
    except UsageError as error:
        return (finding("config.unreadable", step.id, str(error), remedy=error.remedy),)
    if read.script:
        found += _script(step, read, tree, any(run.get("checkpointing.enabled") is True for run in runs))
    seen: set[str] = set()
    for run in runs:
        for item in (*_overrides(step, run, tree), *_run(step, run)):
            if item.what not in seen:
                seen.add(item.what)
                found.append(item)
    if runs and not _for_its_own_sake(step, context):
        found += _megatron(step, runs)
    return tuple(found)


def _for_its_own_sake(step: Step, context: LoopContext) -> bool:
    """A functional script that was asked for by its file name, with nothing of Megatron under test."""
    return step.coverage.variant.endswith(".sh") and not {"bridge", "mcore"} & context.checkouts.keys()


def _missing(step: Step, read: CommandRead, tree: Tree) -> list[Finding]:
    wanted = [path for path in (read.script, read.entry, read.config) if path]
    return [
        finding(
            "missing.script",
            step.id,
            f"{path} does not exist in this checkout",
            file=path,
            remedy=nearest_remedy(tree, path),
        )
        for path in wanted
        if not tree.exists(path)
    ]


def _script(step: Step, read: CommandRead, tree: Tree, saves: bool) -> list[Finding]:
    script = read_script(tree, read.script)
    found = []
    if not script.pipefail and "tee" in tree.text(read.script):
        found.append(
            finding(
                "script.no-pipefail",
                step.id,
                "the script pipes its run into tee without pipefail, so a run that fails ends as success",
                file=read.script,
                severity=Severity.WARNING,
                remedy="the verdict rests on the metrics of the last step, not on the exit status",
            )
        )
    if read.words and not script.overrides_pass:
        found.append(
            finding(
                "script.no-overrides",
                step.id,
                "the script does not pass words on, so overrides have no effect",
                file=read.script,
            )
        )
    found += side_effects(step, tree, read.script)
    kept = [
        run
        for run in script.runs
        for word in run.overrides
        if word.startswith("checkpointing.checkpoint_dir=")
        and word.partition("=")[2] in script.removed_at_exit
    ]
    if kept and saves:
        found.append(
            finding(
                "script.checkpoint-removed",
                step.id,
                "the script deletes its checkpoint when it ends, so nothing can resume from it",
                file=read.script,
                line=kept[0].line,
                severity=Severity.NOTICE,
                remedy="resume is shown by sft_resume_diamond, not by this script",
            )
        )
    return found


def _overrides(step: Step, run: ResolvedRun, tree: Tree) -> list[Finding]:
    gone = {item.key: item.now for item in renames()}
    found = from_problems(step.id, run.problems, gone, file=run.source, line=run.line)
    for word in run.words:
        override = parse(word)
        key = getattr(override, "key", "")
        if getattr(override, "sign", "") not in ("+", "++") or key.startswith(_PASSED_ON):
            continue
        if not _is_read(str(tree.root), key.rpartition(".")[2]):
            now = renamed(key, gone)
            found.append(
                finding(
                    "override.unread",
                    step.id,
                    f"nothing in the checkout reads {key}: the override is accepted and has no effect",
                    key=key,
                    severity=Severity.WARNING,
                    remedy=f"{key} is gone; now: {now}" if now else "leave it out",
                )
            )
    return found


def _megatron(step: Step, runs: tuple[ResolvedRun, ...]) -> list[Finding]:
    on = [run for run in runs if run.get("policy.megatron_cfg.enabled") is True]
    last = runs[-1]
    if not on:
        return [
            finding(
                "backend.not-megatron",
                step.id,
                f"{last.source} runs its policy on DTensor, so it says nothing of the Bridge",
                file=last.source,
                line=last.line,
                key="policy.megatron_cfg.enabled",
                remedy="use a script or configuration with policy.megatron_cfg.enabled=true",
            )
        ]
    return [
        finding(
            "backend.both",
            step.id,
            "both Megatron and DTensor are enabled",
            file=run.source,
            key="policy.dtensor_cfg.enabled",
            remedy="policy.dtensor_cfg.enabled=false",
        )
        for run in on[:1]
        if run.get("policy.dtensor_cfg.enabled") is True
    ]


def _run(step: Step, run: ResolvedRun) -> list[Finding]:
    if run.get("policy.megatron_cfg.enabled") is not True:
        return []
    found = []
    prefix = "policy.megatron_cfg."
    sizes = {
        "TP": run.number(prefix + "tensor_model_parallel_size", 1),
        "PP": run.number(prefix + "pipeline_model_parallel_size", 1),
        "CP": run.number(prefix + "context_parallel_size", 1),
        "EP": run.number(prefix + "expert_model_parallel_size", 1),
        "ETP": run.number(prefix + "expert_tensor_parallel_size", 1),
    }
    world = run.gpus
    colocated = run.get("policy.generation.colocated.enabled")
    if colocated is False:
        world -= _generation_gpus(run)
        if world <= 0:
            return [
                finding(
                    "sizes",
                    step.id,
                    f"generation takes all {run.gpus} GPUs and leaves none to train",
                    file=run.source,
                    key="policy.generation.colocated.resources",
                )
            ]
    batch = run.number("policy.train_global_batch_size", 0)
    micro = run.number("policy.train_micro_batch_size", 0)
    found += [
        finding("sizes", step.id, what, file=run.source, line=run.line)
        for what in parallel_problems(world, sizes, batch, micro)
    ]
    if sizes["TP"] >= 4 and not _tp_is_safe(run, micro):
        found.append(
            finding(
                "tp-accuracy",
                step.id,
                f"TP {sizes['TP']} with different train and logprob micro batches is refused: "
                "a known batch-variant accuracy issue with TP >= 4",
                file=run.source,
                key="policy.logprob_batch_size",
                remedy="TP 2, or policy.logprob_batch_size = policy.train_micro_batch_size; never "
                "NRL_IGNORE_TP_ACCURACY_CHECK in evidence",
            )
        )
    if run.get(prefix + "sequence_parallel") is True and sizes["TP"] == 1:
        found.append(
            finding(
                "sizes",
                step.id,
                "sequence parallelism needs TP > 1",
                key=prefix + "sequence_parallel",
                file=run.source,
                severity=Severity.WARNING,
            )
        )
    transport = run.get("policy.generation.refit_transport")
    if transport in _SPARSE and colocated is not False:
        found.append(
            finding(
                "refit-transport",
                step.id,
                f"{transport} needs generation on GPUs of its own",
                key="policy.generation.refit_transport",
                remedy="policy.generation.colocated.enabled=false",
            )
        )
    return found


def _generation_gpus(run: ResolvedRun) -> int:
    nodes = run.get("policy.generation.colocated.resources.num_nodes")
    per_node = run.get("policy.generation.colocated.resources.gpus_per_node")
    if not isinstance(per_node, int):
        per_node = run.number("cluster.gpus_per_node", 1)
    return per_node * (nodes if isinstance(nodes, int) else 1)


def _tp_is_safe(run: ResolvedRun, micro: int) -> bool:
    return (
        run.number("policy.logprob_batch_size", micro) == micro
        or run.get("loss_fn.force_on_policy_ratio") is True
    )


@cache
def _source(root: str) -> bytes:
    parts = [
        path.read_bytes()
        for folder in ("nemo_rl", "examples")
        for path in sorted(Path(root, folder).rglob("*.py"))
    ]
    return b"\n".join(parts)


def _is_read(root: str, leaf: str) -> bool:
    return leaf.encode() in _source(root)
