"""Variants -> steps: the exact command in this checkout, what it must leave, how it is judged."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.errors import UsageError, nearest
from proveout.domain.loop import LoopContext
from proveout.domain.step import (
    ATTEMPT_DIR,
    Artifact,
    Command,
    Coverage,
    Criterion,
    LevelRequest,
    Resources,
    Source,
    Step,
)
from proveout.domain.tree import Tree
from proveout.loops.criteria import provenance
from proveout.loops.nemo_rl import recipes
from proveout.loops.nemo_rl.functional import FunctionalScript, read_script
from proveout.loops.nemo_rl.runs import SCRIPTS, ResolvedRun, resolve_entry, resolve_script
from proveout.loops.nemo_rl.variants import Variant, choose, table

NAME = "nemo-rl"
_WITHOUT_MEGATRON = "the policy does not run on Megatron, so nothing is said of the Bridge"
UNSET = ("NRL_IGNORE_TP_ACCURACY_CHECK",)


def variants_for(request: LevelRequest, tree: Tree) -> tuple[Variant, ...]:
    """The variants of a request; the name of a functional script is a variant of any level.

    With its suffix (``sft.sh``) it is always the script, also where a variant has the same name.
    """
    stem = request.variant.removesuffix(".sh")
    script = f"{SCRIPTS}/{stem}.sh"
    names = {variant.name for variant in table().variants if variant.level == request.level}
    if request.variant not in {*names, "default", "all"} and tree.exists(script):
        megatron = _is_megatron(tree, script)
        return (
            Variant(
                level=request.level,
                name=request.variant,
                title=f"functional script {stem}",
                claim=f"the functional script {stem} completed",
                script=stem,
                minutes=15,
                policy_check=megatron,
                limitations=() if megatron else (f"{stem}: {_WITHOUT_MEGATRON}",),
            ),
        )
    return choose(request.level, request.variant)


def build(variant: Variant, context: LoopContext, tree: Tree) -> Step:
    """The step of one variant. What cannot run here is a step with a reason for being skipped."""
    try:
        if variant.script:
            return _from_script(variant, context, tree)
        if variant.recipe:
            return _from_recipe(variant, context, tree)
        return _from_entry(variant, context, tree, variant.entry, variant.config)
    except UsageError as error:
        return _skipped(variant, f"{error}")


def environment(context: LoopContext) -> dict[str, str]:
    """The environment that every step gets: the trees under test first and left as they are, a fresh conversion
    cache, no lock rewritten."""
    roots = import_roots(context.checkouts, NAME)
    path = compose_pythonpath(roots, context.options.get("pythonpath", os.environ.get("PYTHONPATH", "")))
    return {
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "NRL_MEGATRON_CHECKPOINT_DIR": f"{ATTEMPT_DIR}/hf_to_mcore",
        "UV_FROZEN": "1",
        "WANDB_MODE": "disabled",
    }


def _from_script(variant: Variant, context: LoopContext, tree: Tree) -> Step:
    path = f"{SCRIPTS}/{variant.script}.sh"
    substitutions: list[str] = [variant.instead_of] if variant.instead_of else []
    if not tree.exists(path):
        stand_in = tree.nearest(path, [f"{SCRIPTS}/*.sh"])
        if not stand_in or not _is_megatron(tree, stand_in):
            return _skipped(
                variant, f"{path} does not exist in this checkout, and no other script stands in for it"
            )
        substitutions.append(f"{path} does not exist in this checkout: {stand_in} stands in for it")
        path = stand_in
    script = read_script(tree, path)
    words = (*variant.overrides, *_model(variant, context), *context.overrides)
    runs = resolve_script(tree, script, words)
    folder = f"{tree.root}/{SCRIPTS}/{PurePosixPath(path).stem}"
    metrics = tuple(Source(format=item.format, path=f"{folder}/{item.path}") for item in variant.metrics) or (
        Source(format="tensorboard", path=script.log_dir),
    )
    argv = (*_uv(context), "bash", path, *words)
    return _step(
        variant,
        context,
        argv,
        runs,
        metrics,
        artifacts=(*_script_artifacts(script), *_events(metrics)),
        checks=(*script.last_checks, *variant.checks),
        criteria=_rooted(variant.criteria, folder),
        substitutions=tuple(substitutions),
        cwd=str(tree.root),
    )


def _from_entry(variant: Variant, context: LoopContext, tree: Tree, entry: str, config: str) -> Step:
    for path in (entry, config):
        if not tree.exists(path):
            return _skipped(variant, f"{path} does not exist in this checkout")
    words = (
        *variant.overrides,
        f"logger.log_dir={ATTEMPT_DIR}/logs",
        "logger.tensorboard_enabled=true",
        "logger.wandb_enabled=false",
        "checkpointing.enabled=false",
        *_model(variant, context),
        *context.overrides,
    )
    run = resolve_entry(tree, entry, config, words)
    metrics = (Source(format="tensorboard", path="logs"),)
    return _step(
        variant,
        context,
        (*_uv(context), entry, "--config", config, *words),
        (run,),
        metrics,
        artifacts=_events(metrics),
        checks=variant.checks,
        criteria=variant.criteria,
        substitutions=(variant.instead_of,) if variant.instead_of else (),
        cwd=str(tree.root),
    )


def _from_recipe(variant: Variant, context: LoopContext, tree: Tree) -> Step:
    path = recipes.find(tree, variant, context.gpus)
    if not path:
        return _skipped(variant, f"no maintained recipe of this checkout fits ({variant.pattern})")
    entry = recipes.entry_of(path)
    section = PurePosixPath(entry).stem.removeprefix("run_").removeprefix("vlm_")
    short = f"{section}.max_num_steps={variant.steps or 2}"
    return _from_entry(_with(variant, overrides=(*variant.overrides, short)), context, tree, entry, path)


def _step(
    variant: Variant,
    context: LoopContext,
    argv: tuple[str, ...],
    runs: tuple[ResolvedRun, ...],
    metrics: tuple[Source, ...],
    *,
    artifacts: tuple[Artifact, ...],
    checks: tuple[str, ...],
    criteria: tuple[Criterion, ...],
    substitutions: tuple[str, ...],
    cwd: str,
) -> Step:
    last = runs[-1] if runs else None
    gpus = max((run.gpus for run in runs), default=variant.gpus)
    nodes = max((run.nodes for run in runs), default=1)
    planned = (
        variant.steps if variant.steps is not None and not variant.recipe else last.steps if last else None
    )
    judged: list[Criterion] = (
        [Criterion(kind="checks", params={"expressions": list(checks)})] if checks else []
    )
    judged += criteria
    expected = {**({"policy.megatron_cfg.enabled": True} if variant.policy_check else {}), **variant.backend}
    if expected:
        judged.append(Criterion(kind="backend", params={"expected": expected}))
    judged.append(Criterion(kind="fresh_import"))
    judged += provenance(context, NAME)
    short = ""
    if context.gpus and gpus > context.gpus:
        short = f"needs {gpus} GPUs, and --gpus says {context.gpus}"
    return Step(
        id=f"{NAME}-L{variant.level}-{variant.name}",
        coverage=Coverage(loop=NAME, level=variant.level, variant=variant.name),
        deliverable=f"NeMo-RL: {variant.title}",
        claim=variant.claim,
        command=Command(argv=argv, env=environment(context), unset=UNSET, cwd=cwd),
        resources=Resources(
            gpus=gpus,
            nodes=nodes,
            minutes=variant.minutes,
            timeout_minutes=variant.timeout or max(60.0, 4 * variant.minutes),
        ),
        planned_steps=planned,
        artifacts=artifacts,
        metrics=metrics,
        config=Source(format="nemo-rl-console", path="run.log"),
        criteria=tuple(judged),
        limitations=(*variant.limitations, *_limitations(variant, context, last)),
        skip_reason=short,
        substitutions=substitutions,
    )


def _limitations(variant: Variant, context: LoopContext, run: ResolvedRun | None) -> list[str]:
    found: list[str] = []
    if run is None:
        return found
    for side in ("policy.generation.vllm_cfg.enforce_eager",):
        if run.get(side) is True:
            found.append(f"{side}=true: vLLM's CUDA graphs were not exercised")
    if variant.level in (0, 1, 2) and run.number("policy.megatron_cfg.expert_model_parallel_size", 1) == 1:
        model = str(run.get("policy.model_name", ""))
        if any(word in model.lower() for word in ("moe", "a3b", "deepseek", "moonlight", "mixtral")):
            found.append("EP=1: experts were not spread over GPUs")
    if context.model and not _takes_model(variant):
        found.append(f"{variant.title} ran with its own model, not with {context.model}")
    return found


def _model(variant: Variant, context: LoopContext) -> tuple[str, ...]:
    if not context.model or not _takes_model(variant):
        return ()
    words = [f"policy.model_name={context.model}", f"policy.tokenizer.name={context.model}"]
    return (*words, f"value.model_name={context.model}") if "ppo" in variant.script else tuple(words)


def _takes_model(variant: Variant) -> bool:
    return variant.level != 5 and not variant.recipe and variant.script not in ("distillation_megatron",)


def _uv(context: LoopContext) -> tuple[str, ...]:
    return ("uv", "run", *context.options.get("uv", "").split())


def _script_artifacts(script: FunctionalScript) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(path=path, what="metrics dumped by the script") for path in script.metrics if "$" not in path
    )


def _events(metrics: tuple[Source, ...]) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(path=f"{source.path}/**/events.out.tfevents.*", what="TensorBoard events")
        for source in metrics
        if source.format == "tensorboard"
    )


def _rooted(criteria: tuple[Criterion, ...], folder: str) -> tuple[Criterion, ...]:
    """Criteria whose files lie in the script's own directory, with absolute paths."""
    return tuple(Criterion(kind=item.kind, params=_absolute(item.params, folder)) for item in criteria)


def _absolute(params: dict[str, Any], folder: str) -> dict[str, Any]:
    return {
        key: str(Path(folder, value)) if isinstance(value, str) and value.endswith(".json") else value
        for key, value in params.items()
    }


def _is_megatron(tree: Tree, script: str) -> bool:
    runs = resolve_script(tree, read_script(tree, script), ())
    return bool(runs) and all(run.get("policy.megatron_cfg.enabled") is True for run in runs)


def _skipped(variant: Variant, reason: str) -> Step:
    return Step(
        id=f"{NAME}-L{variant.level}-{variant.name}",
        coverage=Coverage(loop=NAME, level=variant.level, variant=variant.name),
        deliverable=f"NeMo-RL: {variant.title}",
        claim=variant.claim,
        command=Command(argv=()),
        resources=Resources(gpus=variant.gpus, minutes=variant.minutes),
        skip_reason=reason,
    )


def _with(variant: Variant, **changes: Any) -> Variant:
    import msgspec

    return msgspec.structs.replace(variant, **changes)


def unknown_option(context: LoopContext) -> None:
    """Raise UsageError for an option that this loop does not have."""
    known = ("uv", "hf_gated", "pythonpath")
    for name in context.options:
        if name not in known and not name.isupper():
            raise UsageError(
                f"loop {NAME} has no option {name!r}{nearest(name, known)}",
                remedy=f"options: {', '.join(known)}",
            )
