"""Loop verl on platform cpu: verl's own trainer or wrapper in the environment of stack verl-cpu."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.errors import BlockedError, UsageError, nearest
from proveout.domain.finding import Finding
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
from proveout.domain.tree import parse_yaml
from proveout.loops.criteria import provenance
from proveout.loops.verl.variants import table as gpu_table
from proveout.stacks.place import installed, root
from proveout.stacks.shipped import platform_path

NAME, STACK, PLATFORM = "verl", "verl-cpu", "cpu"
OPTIONS = {
    "platform": "cpu",
    "python": "interpreter in place of stack verl-cpu's",
    "family": "of the tiny model",
}
FAMILIES = ("qwen2", "qwen3", "llama", "qwen3-moe")
ENGINES = ("actor_rollout_ref.actor.megatron", "actor_rollout_ref.ref.megatron", "critic.megatron")
TIMEOUT_MINUTES = 30.0


class From(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The checkpoint that a variant resumes: of which variant, after which step."""

    variant: str
    step: int


class Variant(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """One way to run one level; see ``cpu.yaml`` for the fields."""

    level: int
    name: str
    title: str
    claim: str
    minutes: float
    steps: int
    core: bool = False
    critic: bool = False
    peft: bool = True
    signal: bool = False
    gpus: int = 1
    family: str = ""
    sizes: dict[str, int] = {}
    words: tuple[str, ...] = ()
    saves: tuple[int, ...] = ()
    from_: From | None = None
    unsupported: str = ""
    limitations: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words that every run shares, those of a critic and of each engine, and all variants."""

    levels: dict[int, str]
    limitations: tuple[str, ...]
    base: tuple[str, ...]
    critic: tuple[str, ...]
    engine: tuple[str, ...]
    agreement: tuple[dict[str, Any], ...]
    variants: tuple[Variant, ...]


@cache
def table() -> Table:
    """The table of platform cpu."""
    return msgspec.convert(parse_yaml((files(__package__) / "cpu.yaml").read_text()), Table)


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
    _python(context)
    _family(context, "")
    return ()


def steps(request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
    """The steps of one level, with the saving variant before the one that resumes."""
    return tuple(_step(variant, context) for variant in _choose(request))


def _choose(request: LevelRequest) -> Iterator[Variant]:
    of_level = [variant for variant in table().variants if variant.level == request.level]
    if not of_level:
        title = gpu_table().levels.get(request.level, "")
        yield Variant(
            level=request.level,
            name=request.variant,
            title=title,
            claim="",
            minutes=0,
            steps=0,
            unsupported=f"platform cpu has no level {request.level} ({title}): it needs GPUs",
        )
        return
    if request.variant == "default":
        yield from (variant for variant in of_level if variant.core)
        return
    names = [variant.name for variant in of_level]
    if request.variant != "all" and request.variant not in names:
        raise UsageError(
            f"verl level {request.level} has no variant {request.variant!r} on platform cpu"
            f"{nearest(request.variant, names)}",
            remedy=f"variants: default, all, {', '.join(names)}",
        )
    for variant in of_level:
        needed = any(
            v.name == request.variant and v.from_ and v.from_.variant == variant.name for v in of_level
        )
        if needed or request.variant in ("all", variant.name):
            yield variant


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
        command=_command(variant, context),
        resources=Resources(minutes=variant.minutes, timeout_minutes=TIMEOUT_MINUTES),
        planned_steps=variant.steps,
        artifacts=(
            Artifact(path="refit.jsonl", what="record of each transfer of weights to generation"),
            *(
                Artifact(
                    path=f"{_checkpoints(variant)}/global_step_{step}/actor",
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
    if variant.signal:
        yield Criterion(kind="learning_signal", params={"peft": variant.peft})
    yield from provenance(context, NAME)


def _command(variant: Variant, context: LoopContext) -> Command:
    python, family = _python(context), _family(context, variant.family)
    own_model = _own_model(context) if not variant.family else ""
    assets = f"{ATTEMPT_DIR}/../../assets/{'data' if own_model else family}-{context.seed}"
    fields = {
        "assets": assets,
        "model": own_model or f"{assets}/model",
        "seed": str(context.seed + 1),
        "gpus": str(variant.gpus),
    }
    words = [_fill(word, fields) for word in _words(variant)]
    words += [f"trainer.total_training_steps={variant.steps}"]
    words += [f"trainer.default_local_dir={_checkpoints(variant)}", f"hydra.run.dir={ATTEMPT_DIR}/hydra"]
    if variant.from_:
        saved = f"{_shared(variant.level, variant.from_.variant)}/global_step_{variant.from_.step}"
        words += ["trainer.resume_mode=resume_path", f"trainer.resume_from_path={saved}"]
    start = (
        python,
        "-m",
        "proveout_cpu.verl.start",
        assets,
        "-" if own_model else family,
        str(context.seed),
        "--",
    )
    env = _environment(context, python)
    verl = context.checkouts.get(NAME)
    if verl and not variant.sizes.get("expert_model_parallel_size"):
        script = f"{verl}/{gpu_table().wrapper}"
        if Path(script).is_file():
            env |= {"VERL_USE_UV": "0", "SKIP_SAVE_HF_MODEL": "1"}
            return Command(
                argv=(*start, "bash", script, *words, *context.overrides), env=env, unset=("RAY_ADDRESS",)
            )
    argv = (*start, python, "-W", "ignore", "-m", "verl.trainer.main_ppo", *words, *context.overrides)
    return Command(argv=argv, env=env, unset=("RAY_ADDRESS",))


def _checkpoints(variant: Variant) -> str:
    """A directory of the attempt's own, or beside the attempts where another step resumes from it."""
    resumed = any(
        v.from_ and (v.level, v.from_.variant) == (variant.level, variant.name) for v in table().variants
    )
    return _shared(variant.level, variant.name) if resumed else f"{ATTEMPT_DIR}/checkpoints"


def _shared(level: int, name: str) -> str:
    return f"{ATTEMPT_DIR}/../{NAME}-L{level}-{name}-checkpoints"


def _words(variant: Variant) -> Iterator[str]:
    shared = table()
    yield f"algorithm.adv_estimator={'gae' if variant.critic else 'grpo'}"
    yield from shared.base
    yield from shared.critic if variant.critic else ()
    for engine in ENGINES[: 3 if variant.critic else 2]:
        yield from (word.replace("{engine}", engine) for word in shared.engine)
        yield from (f"{engine}.{size}={value}" for size, value in variant.sizes.items())
    yield from variant.words


def _fill(word: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _environment(context: LoopContext, python: str) -> dict[str, str]:
    stacks = root(os.environ)
    roots = import_roots(context.checkouts, NAME)
    present = {module: place for module, place in roots.items() if Path(place, *module.split(".")).is_dir()}
    return {
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": compose_pythonpath({**present, "proveout_cpu": str(platform_path(stacks))}),
        "PYTHONPYCACHEPREFIX": str(stacks / "pycache"),
        "PROVEOUT_EVIDENCE": ATTEMPT_DIR,
        "PROVEOUT_CPU_ANSWER_PROBE": "1",
        "VERL_PLATFORM": PLATFORM,
        "VERL_USE_EXTERNAL_MODULES": "proveout_cpu.verl.plugin",
        "VERL_ENGINE_DEVICE": "cuda",
        "TORCHDYNAMO_DISABLE": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }


def _python(context: LoopContext) -> str:
    if named := context.options.get("python"):
        return str(Path(named).expanduser().absolute())
    place = installed(STACK, os.environ)
    if place is None:
        raise BlockedError(
            f"stack {STACK} is not installed",
            where=str(root(os.environ) / STACK),
            remedy=f"proveout stack install {STACK}",
        )
    return str(place.python)


def _own_model(context: LoopContext) -> str:
    """The directory that the plan names as its model; a name on the hub is none."""
    return str(Path(context.model).absolute()) if context.model and Path(context.model).is_dir() else ""


def _family(context: LoopContext, of_variant: str) -> str:
    named = of_variant or context.options.get("family", "")
    if named:
        if named not in FAMILIES:
            raise UsageError(
                f"no tiny model of family {named!r}{nearest(named, FAMILIES)}",
                remedy=f"known: {', '.join(FAMILIES)}",
            )
        return named
    return _of_model(context.model or "") or FAMILIES[0]


def _of_model(model: str) -> str:
    """The family whose tiny model is nearest to a model's name on the hub; '' where none is."""
    name = model.lower()
    for words, family in (
        (("qwen3", "a3b"), "qwen3-moe"),
        (("qwen3-",), "qwen3"),
        (("qwen2",), "qwen2"),
        (("llama",), "llama"),
    ):
        if all(word in name for word in words):
            return family
    return ""


def _of_family(variant: Variant, context: LoopContext) -> tuple[str, ...]:
    if variant.family or not context.model or _own_model(context):
        return ()
    family = _family(context, "")
    if not context.options.get("family") and not _of_model(context.model):
        return (
            f"{context.model} has no tiny model here: a tiny {family} ran in its place, and its own family did not",
        )
    return (f"a tiny {family} ran in the place of {context.model}",)
