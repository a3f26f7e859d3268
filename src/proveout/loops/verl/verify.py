"""Is a step true in this checkout? The wrapper has the variables, the configuration takes the words,
sizes fit."""

from __future__ import annotations

from typing import Any

from proveout.domain.config.interpolate import ABSENT, Unresolved, lookup
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Finding, Severity
from proveout.domain.loop import LoopContext
from proveout.domain.step import Step
from proveout.domain.tree import Tree
from proveout.loops.findings import finding, from_problems, parallel_problems
from proveout.loops.verl.variants import known, required, table
from proveout.loops.verl.wrapper import Wrapper, read_wrapper, resolve

_MEGATRON = "actor_rollout_ref.actor.megatron."
_OTHERS = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def verify(step: Step, context: LoopContext, tree: Tree) -> tuple[Finding, ...]:
    """Everything in ``step`` that the checkout would reject or ignore."""
    argv = step.command.argv
    if len(argv) < 2:
        return ()
    path, words = argv[1], argv[2:]
    if not tree.exists(path):
        return (finding("missing.script", step.id, f"{path} does not exist in this checkout", file=path),)
    config_file = step.command.env.get("DUMMY_MODEL_CONFIG_PATH", "")
    found: list[Finding] = []
    if config_file and not config_file.startswith(("/", "~")) and not tree.exists(config_file):
        found.append(
            finding(
                "missing.script", step.id, f"{config_file} does not exist in this checkout", file=config_file
            )
        )
    try:
        wrapper = read_wrapper(tree, path, step.command.env)
        run = resolve(tree, wrapper, words, table().config_dir, table().config_name)
    except UsageError as error:
        return (*found, finding("config.unreadable", step.id, str(error), remedy=error.remedy))
    found += _variables(step, wrapper)
    if not wrapper.passes_words:
        found.append(finding("script.no-overrides", step.id, "the script does not pass words on", file=path))
    found += from_problems(step.id, run.problems, {}, file=path)
    return (*found, *_sizes(step, run.config, path), *_resume(step, run.config, path))


def wrapper_findings(tree: Tree) -> tuple[Finding, ...]:
    """What about the checkout's wrapper a reader must know, whatever is run."""
    path = table().wrapper
    if not tree.exists(path):
        return ()
    wrapper = read_wrapper(tree, path, {})
    found = [
        finding(
            "wrapper.prepends",
            "verl",
            f"the wrapper puts {entry} in front of PYTHONPATH; where that directory exists "
            "it hides the Megatron-Core under test",
            file=path,
            severity=Severity.WARNING,
            remedy="the workers get the composed PYTHONPATH through Ray's runtime environment; do not mount "
            f"{entry}, or mount the one under test there",
        )
        for entry in wrapper.prepends
    ]
    new = sorted(set(wrapper.defaults) - known().known)
    if new:
        found.append(
            finding(
                "wrapper.new",
                "verl",
                f"the wrapper has variables that proveout does not know: {', '.join(new)}",
                file=path,
                severity=Severity.NOTICE,
            )
        )
    return tuple(found)


def _variables(step: Step, wrapper: Wrapper) -> list[Finding]:
    found = []
    text_only = {*wrapper.defaults, "DUMMY_MODEL_CONFIG_PATH", *required()}
    for name in step.command.env:
        if name in _OTHERS or not name.isupper():
            continue
        if name not in text_only:
            now = known().renames.get(name, "")
            found.append(
                finding(
                    "wrapper.unknown-variable",
                    step.id,
                    f"{wrapper.path} has no variable {name}{nearest(name, wrapper.defaults)}",
                    file=wrapper.path,
                    key=name,
                    remedy=f"now: {now}" if now else "",
                    severity=Severity.ERROR,
                )
            )
        elif name in wrapper.unused:
            found.append(
                finding(
                    "wrapper.unused-variable",
                    step.id,
                    f"{wrapper.path} sets {name} and never uses it",
                    file=wrapper.path,
                    key=name,
                    severity=Severity.WARNING,
                )
            )
    return found


def _sizes(step: Step, config: dict[str, Any], path: str) -> list[Finding]:
    world = _number(config, "trainer.n_gpus_per_node", 1) * _number(config, "trainer.nnodes", 1)
    sizes = {
        "TP": _number(config, _MEGATRON + "tensor_model_parallel_size", 1),
        "PP": _number(config, _MEGATRON + "pipeline_model_parallel_size", 1),
        "CP": _number(config, _MEGATRON + "context_parallel_size", 1),
        "EP": _number(config, _MEGATRON + "expert_model_parallel_size", 1),
        "ETP": _number(config, _MEGATRON + "expert_tensor_parallel_size", 1),
    }
    batch = _number(config, "data.train_batch_size", 0) * _number(config, "actor_rollout_ref.rollout.n", 1)
    dynamic = lookup(config, "actor_rollout_ref.actor.use_dynamic_bsz") is True
    micro = 1 if dynamic else _number(config, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 1)
    problems = parallel_problems(world, sizes, batch, micro)
    rollout = _number(config, "actor_rollout_ref.rollout.tensor_model_parallel_size", 1)
    if world % rollout:
        problems.append(f"rollout TP {rollout} does not divide {world} GPUs")
    virtual = lookup(config, _MEGATRON + "virtual_pipeline_model_parallel_size")
    if isinstance(virtual, int) and sizes["PP"] == 1:
        problems.append(f"virtual pipeline size {virtual} needs PP > 1")
    return [finding("sizes", step.id, what, file=path) for what in problems]


def _resume(step: Step, config: dict[str, Any], path: str) -> list[Finding]:
    total = _number(config, "trainer.total_training_steps", 0)
    if lookup(config, "trainer.resume_mode") == "auto" and step.needs and total <= 1:
        return [
            finding(
                "resume.trains-nothing",
                step.id,
                f"a run that resumes at step 1 with total_training_steps={total} trains "
                "nothing and still ends as success",
                file=path,
                key="trainer.total_training_steps",
                remedy="TOTAL_TRAIN_STEPS=2",
            )
        ]
    return []


def _number(config: dict[str, Any], key: str, default: int) -> int:
    value = lookup(config, key)
    if value is ABSENT or isinstance(value, Unresolved | bool) or not isinstance(value, int):
        return default
    return value
