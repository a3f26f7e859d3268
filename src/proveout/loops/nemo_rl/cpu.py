"""Loop nemo-rl on platform cpu: NeMo-RL's own scripts, unmodified, in the environment of stack nemo-rl-cpu."""

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
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, Artifact, Command, Criterion, LevelRequest, Resources, Step
from proveout.domain.tree import Tree, parse_yaml
from proveout.loops.nemo_rl.steps import NAME, UNSET, build
from proveout.loops.nemo_rl.variants import Variant
from proveout.loops.own_model import own_model
from proveout.stacks.place import Place, root
from proveout.stacks.shipped import platform_path

STACK, PLATFORM = "nemo-rl-cpu", "cpu"
OPTIONS = ("platform", "python", "pythonpath")
ASSETS = f"{ATTEMPT_DIR}/../../assets/{NAME}"
DATA, SIGNAL_DATA = "sums.jsonl", "sums-to-2.jsonl"
"""Made by the launcher: sums of any digits, and of 0 and 1 alone, which a tiny model learns in few steps."""
TIMEOUT_MINUTES = 40.0
ENVIRONMENT = {"TORCH_CUDA_ARCH_LIST": "9.0"}
"""NeMo-RL stops without it, whatever it builds; the launcher sets the rest."""


class Resumes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The checkpoint that a variant goes on from: of which variant of its level, after which step."""

    variant: str
    step: int


class CpuVariant(Variant, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to run one level on the CPU; see ``cpu.yaml`` for the fields."""

    moving: bool = False
    no_overlap: bool = False
    moves: bool = True
    resumes: Resumes | None = None
    saves: tuple[int, ...] = ()
    signal: bool = False


class CpuTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every run shares, and all variants in order."""

    limitations: tuple[str, ...]
    megatron_limitation: str
    words: tuple[str, ...]
    moving: tuple[str, ...]
    no_overlap: str
    agreement: tuple[dict[str, Any], ...]
    variants: tuple[CpuVariant, ...]


@cache
def table() -> CpuTable:
    """The table of platform cpu."""
    return msgspec.convert(parse_yaml((files(__package__) / "cpu.yaml").read_text()), CpuTable)


def wanted(context: LoopContext) -> bool:
    """Whether the run asks for this platform. Raises UsageError for another one."""
    asked = context.options.get("platform", "")
    if asked not in ("", PLATFORM):
        raise UsageError(f"loop {NAME} has no platform {asked!r}", remedy=f"known: {PLATFORM}")
    return asked == PLATFORM


def check(context: LoopContext) -> None:
    """Raises UsageError for an option that is none or a missing Bridge, BlockedError where there is no stack."""
    for name in context.options:
        if name not in OPTIONS:
            raise UsageError(
                f"platform {PLATFORM} of loop {NAME} has no option {name!r}{nearest(name, OPTIONS)}",
                remedy=f"options: {', '.join(OPTIONS)}",
            )
    if "bridge" not in context.checkouts:
        raise UsageError(
            f"platform {PLATFORM} of loop {NAME} needs a Megatron-Bridge checkout",
            remedy="give --bridge PATH or set BRIDGE_REPO",
        )
    if not Path(_python(context)).exists():
        raise BlockedError(
            f"loop {NAME} has no environment to run in on the CPU",
            where=_python(context),
            remedy=f"'proveout stack install {STACK}' makes one; --set {NAME}:python=PATH names another",
        )


def steps(request: LevelRequest, context: LoopContext, tree: Tree) -> tuple[Step, ...]:
    """The steps of one level, the one that saves before the one that resumes."""
    chosen = tuple(_choose(request))
    if chosen:
        return tuple(_step(variant, context, tree) for variant in chosen)
    nothing = CpuVariant(level=request.level, name=request.variant, title="", claim="", minutes=0)
    reason = f"platform {PLATFORM} has nothing for level {request.level}: it needs GPUs"
    return (msgspec.structs.replace(_bare(nothing, context, tree), skip_reason=reason),)


def _choose(request: LevelRequest) -> Iterator[CpuVariant]:
    of_level = [variant for variant in table().variants if variant.level == request.level]
    names = [variant.name for variant in of_level]
    if of_level and request.variant not in (*names, "default", "all"):
        raise UsageError(
            f"{NAME} level {request.level} has no variant {request.variant!r} on platform {PLATFORM}"
            f"{nearest(request.variant, names)}",
            remedy=f"variants: default, all, {', '.join(names)}",
        )
    asked = [
        variant
        for variant in of_level
        if request.variant in ("all", variant.name) or (request.variant == "default" and variant.core)
    ]
    needed = {variant.resumes.variant for variant in asked if variant.resumes}
    return (variant for variant in of_level if variant in asked or variant.name in needed)


def _step(variant: CpuVariant, context: LoopContext, tree: Tree) -> Step:
    bare = _bare(variant, context, tree)
    if bare.skip_reason:
        return bare
    megatron = variant.backend.get("policy.generation.backend") == "megatron"
    return msgspec.structs.replace(
        bare,
        deliverable=f"{bare.deliverable} (platform cpu)",
        claim=f"{variant.claim} (platform cpu)",
        command=_command(bare, variant, context),
        resources=Resources(minutes=variant.minutes, timeout_minutes=TIMEOUT_MINUTES),
        planned_steps=variant.steps,
        artifacts=(*bare.artifacts, *_artifacts(variant)),
        criteria=(*bare.criteria, *_criteria(variant)),
        limitations=(
            *table().limitations,
            *((table().megatron_limitation,) if megatron else ()),
            *bare.limitations,
            *((f"a tiny Qwen2 ran in the place of {context.model}",) if _replaced(context) else ()),
        ),
        needs=(_id(variant, variant.resumes.variant),) if variant.resumes else (),
    )


def _replaced(context: LoopContext) -> bool:
    return bool(context.model) and not own_model(context)


def _bare(variant: CpuVariant, context: LoopContext, tree: Tree) -> Step:
    """The step as it is on GPUs, with the overrides of this platform."""
    words = [word for word in table().words if "use_tqdm" not in word or _vllm(variant)]
    words += table().moving if variant.moving else ()
    words += (table().no_overlap,) if variant.no_overlap else ()
    fields = {
        "model": own_model(context) or f"{ASSETS}/model-{context.seed}",
        "data": f"{ASSETS}/{SIGNAL_DATA if variant.signal else DATA}",
        "checkpoints": _checkpoints(variant),
    }
    filled = [_fill(word, fields) for word in (*words, f"grpo.seed={context.seed}", *variant.overrides)]
    here = msgspec.structs.replace(context, model=None, gpus=0, overrides=(*filled, *context.overrides))
    return build(msgspec.structs.replace(variant, overrides=()), here, tree)


def _command(bare: Step, variant: CpuVariant, context: LoopContext) -> Command:
    start = [_python(context), "-m", "proveout_cpu.nemo_rl.launch", "--attempt", ATTEMPT_DIR]
    start += ["--bytecode", str(root(os.environ) / "bytecode")]
    start += ["--place", ASSETS, "--seed", str(context.seed), "--gpus", str(variant.gpus)]
    start += [] if own_model(context) else ["--tiny"]
    if variant.resumes:
        saved = f"{_shared(variant, variant.resumes.variant)}/step_{variant.resumes.step}"
        start += ["--resume", saved, _checkpoints(variant)]
    words = bare.command.argv
    own = words[words.index("run") + 1 :]
    program = own if own[0] == "bash" else ("uv", "run", *own)
    path = compose_pythonpath(
        {
            "platform": str(platform_path(root(os.environ))),
            **import_roots(context.checkouts, NAME),
        },
        context.options.get("pythonpath", ""),
    )
    env = {**bare.command.env, **ENVIRONMENT, "PYTHONPATH": path, "PROVEOUT_EVIDENCE": ATTEMPT_DIR}
    return Command(
        argv=(*start, "--", *program), env=env, unset=(*UNSET, "RAY_ADDRESS"), cwd=bare.command.cwd
    )


def _artifacts(variant: CpuVariant) -> Iterator[Artifact]:
    yield Artifact(path="refit.jsonl", what="record of each transfer of weights to generation")
    for step in variant.saves:
        yield Artifact(path=f"{_checkpoints(variant)}/step_{step}", what=f"checkpoint of step {step}")


def _criteria(variant: CpuVariant) -> Iterator[Criterion]:
    yield Criterion(kind="checks", params={"expressions": ['max(data["train/grad_norm"]) > 0']})
    yield Criterion(
        kind="refit_proof",
        params={
            "agreement": list(table().agreement),
            "fresh": variant.resumes is None,
            "moved": variant.moves,
        },
    )
    if variant.resumes:
        saved = _id(variant, variant.resumes.variant)
        yield Criterion(
            kind="resume_parity",
            params={"baseline": saved, "saved": saved, "resumed_after": variant.resumes.step},
        )
    if variant.signal:
        yield Criterion(kind="learning_signal", params={})


def _python(context: LoopContext) -> str:
    return context.options.get("python") or str(Place(root(os.environ), STACK).python)


def _vllm(variant: CpuVariant) -> bool:
    return variant.backend.get("policy.generation.backend") != "megatron"


def _id(variant: CpuVariant, name: str) -> str:
    return f"{NAME}-L{variant.level}-{name}"


def _shared(variant: CpuVariant, name: str) -> str:
    return f"{ATTEMPT_DIR}/../{_id(variant, name)}-checkpoints"


def _checkpoints(variant: CpuVariant) -> str:
    return f"{ATTEMPT_DIR}/checkpoints" if variant.resumes else _shared(variant, variant.name)


def _fill(word: str, fields: dict[str, str]) -> str:
    for name, value in fields.items():
        word = word.replace("{" + name + "}", value)
    return word
