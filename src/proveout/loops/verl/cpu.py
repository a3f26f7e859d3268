"""Loop verl on platform cpu: verl's own trainer or wrapper in the environment of stack verl-cpu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Finding
from proveout.domain.loop import LoopContext
from proveout.domain.step import Artifact, Command, Coverage, Criterion, LevelRequest, Resources, Source, Step
from proveout.domain.tree import Tree
from proveout.loops.criteria import provenance
from proveout.loops.findings import finding, from_problems
from proveout.loops.own_model import own_model
from proveout.loops.verl.cpu_command import (
    ENGINES,
    NAME,
    PLATFORM,
    checkpoints,
    command,
    family,
    of_model,
    planned,
    python,
)
from proveout.loops.verl.cpu_table import Variant, choose, table
from proveout.loops.verl.variants import table as gpu_table

OPTIONS = {
    "platform": "cpu",
    "python": "interpreter in place of stack verl-cpu's",
    "family": "of the tiny model",
    "modules": "further modules for VERL_USE_EXTERNAL_MODULES, separated by commas",
    "pythonpath": "what stands on the workers' PYTHONPATH after the checkouts",
}
TIMEOUT_MINUTES = 30.0
CONFIG_NAME = "ppo_trainer"


def wanted(context: LoopContext) -> bool:
    """Whether the run asks for this platform. Raises UsageError for another one."""
    asked = context.options.get("platform", "")
    if asked not in ("", PLATFORM):
        raise UsageError(
            f"loop {NAME} has no platform {asked!r}", where="--platform", remedy=f"known: {PLATFORM}"
        )
    return asked == PLATFORM


def check(context: LoopContext) -> tuple[Finding, ...]:
    """Nothing to warn of. Raises UsageError for an option or override that is none, BlockedError where the stack is
    not installed."""
    from proveout.domain.config.overrides import Problem, parse

    for name in context.options:
        if name not in OPTIONS:
            raise UsageError(
                f"platform {PLATFORM} of loop {NAME} has no option {name!r}{nearest(name, OPTIONS)}",
                remedy=f"options: {', '.join(OPTIONS)}; what the wrapper reads from variables is set by overrides",
            )
    for word in context.overrides:
        if isinstance(problem := parse(word), Problem):
            raise UsageError(problem.what, where=word, remedy=problem.remedy)
    family(context, "")
    python(context)
    return ()


def steps(request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
    """The steps of one level, with the saving variant before the one that resumes."""
    return tuple(_step(variant, context) for variant in choose(request))


def verify(step: Step, context: LoopContext) -> tuple[Finding, ...]:
    """What of the step's words verl's configuration, in the checkout or in the stack, would reject."""
    from proveout.domain.config import hydra

    tree = _configuration(context)
    words = step.command.argv[step.command.argv.index("--") + 1 :] if step.command.argv else ()
    overrides = tuple(
        w.replace("{attempt_dir}", "ATTEMPT") for w in words if "=" in w and not w.startswith("-")
    )
    if tree is None or not overrides:
        return ()
    try:
        _, problems = hydra.compose(tree, gpu_table().config_dir, CONFIG_NAME, overrides)
    except UsageError as error:
        return (finding("config.unreadable", step.id, str(error), remedy=error.remedy),)
    return tuple(from_problems(step.id, problems, {}, file=gpu_table().config_dir))


def _configuration(context: LoopContext) -> Tree | None:
    """The tree that holds verl's configuration; None where it is not found beside the interpreter."""
    if NAME in context.checkouts:
        return Tree(context.checkouts[NAME])
    sites = Path(python(context)).parents[1].glob("lib/python3*/site-packages/verl/trainer/config")
    return next((Tree(str(site.parents[2])) for site in sites), None)


def _step(variant: Variant, context: LoopContext) -> Step:
    coverage = Coverage(loop=NAME, level=variant.level, variant=variant.name)
    identity = f"{NAME}-L{variant.level}-{variant.name}"
    if variant.unsupported:
        return Step(
            id=identity,
            coverage=coverage,
            deliverable=f"verl on a CPU: {variant.title}",
            claim=variant.claim,
            command=Command(argv=()),
            skip_reason=variant.unsupported,
        )
    return Step(
        id=identity,
        coverage=coverage,
        deliverable=f"verl on a CPU: {variant.title}",
        claim=f"{variant.claim} (platform cpu)",
        command=command(variant, context),
        resources=Resources(minutes=variant.minutes, timeout_minutes=TIMEOUT_MINUTES),
        planned_steps=planned(variant, context),
        artifacts=(
            Artifact(path="refit.jsonl", what="record of each transfer of weights to generation"),
            *(
                Artifact(
                    path=f"{checkpoints(variant)}/global_step_{step}/actor",
                    what=f"actor saved at step {step}",
                )
                for step in variant.saves
            ),
        ),
        metrics=(Source(format="verl-console", path="run.log"),),
        config=Source(format="verl-console", path="run.log"),
        criteria=tuple(_criteria(variant, context)),
        limitations=(*table().limitations, *variant.limitations, *_of_family(variant, context)),
        needs=(f"{NAME}-L{variant.level}-{variant.from_.variant}",) if variant.from_ else (),
    )


def _criteria(variant: Variant, context: LoopContext) -> Iterator[Criterion]:
    if variant.signal:
        yield Criterion(kind="learning_signal", params={"peft": variant.peft})
    grads = ['min(data["actor/grad_norm"]) > 0']
    if variant.critic:
        grads.append('min(data["critic/grad_norm"]) > 0')
    yield Criterion(kind="checks", params={"expressions": grads})
    yield Criterion(
        kind="refit_proof", params={"agreement": table().agreement, "fresh": variant.from_ is None}
    )
    expected: dict[str, Any] = {f"{ENGINES[0]}.use_mbridge": True, f"{ENGINES[0]}.vanilla_mbridge": False}
    expected |= {f"{ENGINES[0]}.{size}": value for size, value in variant.sizes.items()}
    yield Criterion(kind="backend", params={"expected": expected})
    yield Criterion(kind="log", params={"excludes": ["The legacy mbridge backend selected by"]})
    if variant.peft:
        yield Criterion(kind="trainable")
    if variant.from_:
        saved = f"{NAME}-L{variant.level}-{variant.from_.variant}"
        yield Criterion(
            kind="resume_parity",
            params={"baseline": saved, "saved": saved, "resumed_after": variant.from_.step},
        )
    yield from provenance(context, NAME)


def _of_family(variant: Variant, context: LoopContext) -> tuple[str, ...]:
    if variant.family or not context.model or own_model(context):
        return ()
    kind = family(context, "")
    if not context.options.get("family") and not of_model(context.model):
        return (
            f"{context.model} has no tiny model here: a tiny {kind} ran in its place, and its own family did not",
        )
    return (f"a tiny {kind} ran in the place of {context.model}",)
