"""Environment variables that stop a loop or turn its imports elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.domain.step import ATTEMPT_DIR
from proveout.preflight import workers
from proveout.preflight.check import Check, blocked, warning
from proveout.preflight.loops import needs_stack, wants

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def _rocr(context: PreflightContext) -> Iterator[Finding]:
    for loop, env in context.environments().items():
        beside = [name for name in VISIBLE if name in env]
        if "ROCR_VISIBLE_DEVICES" in env and beside:
            yield blocked(
                "rocr.both",
                f"ROCR_VISIBLE_DEVICES is set beside {' and '.join(beside)} ({loop}): workers refuse",
                where=Where(key="ROCR_VISIBLE_DEVICES"),
                remedy="unset ROCR_VISIBLE_DEVICES",
            )


def _arch(context: PreflightContext) -> Iterator[Finding]:
    if not context.environment("nemo-rl").get("TORCH_CUDA_ARCH_LIST"):
        yield blocked(
            "cuda-arch.unset",
            "TORCH_CUDA_ARCH_LIST is not set: NeMo-RL's Megatron policy stops without it",
            where=Where(key="TORCH_CUDA_ARCH_LIST"),
            remedy="set it to the compute capability of the GPUs, as in TORCH_CUDA_ARCH_LIST='9.0'",
        )


def _pythonpath(context: PreflightContext) -> Iterator[Finding]:
    for env in context.environments().values():
        value = env.get("PYTHONPATH", "")
        entries = value.split(":")
        if value and "" in entries:
            yield warning(
                "pythonpath.empty-entry",
                f"PYTHONPATH has an empty entry, which is the current directory: {value}",
                where=Where(key="PYTHONPATH"),
                remedy="take the colon away that stands at the end, at the start or twice",
            )
        fixed = [entry for entry in entries if entry and ATTEMPT_DIR not in entry]
        gone = [entry for entry in fixed if not Path(entry).exists()]
        if gone:
            yield warning(
                "pythonpath.absent",
                f"PYTHONPATH names what is not there: {', '.join(gone)}",
                where=Where(key="PYTHONPATH"),
                remedy="correct the path; imports fall through to whatever comes next",
            )


def _shadow(context: PreflightContext) -> Iterator[Finding]:
    prefix = workers.wrapper_prefix(context)
    if not prefix or not (Path(prefix) / "megatron" / "core").is_dir():
        return
    mcore = context.checkouts.get("mcore")
    if mcore is None or Path(mcore).resolve() != Path(prefix).resolve():
        yield warning(
            "megatron-shadow.present",
            f"verl's wrapper puts {prefix} first on PYTHONPATH: its megatron.core wins",
            where=Where(file=str(Path(context.checkouts["verl"]) / workers.VERL_WRAPPER)),
            remedy="move that directory away, or start verl without the wrapper's first lines",
        )


ROCR = Check(
    id="rocr",
    proves="ROCR_VISIBLE_DEVICES is not set beside CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
    remedy="unset ROCR_VISIBLE_DEVICES",
    applies=needs_stack,
    run=_rocr,
)
ARCH = Check(
    id="cuda-arch",
    proves="TORCH_CUDA_ARCH_LIST is set where NeMo-RL's Megatron policy asks for it",
    remedy="set it to the GPUs' compute capability",
    applies=wants("nemo-rl"),
    run=_arch,
)
PYTHONPATH = Check(
    id="pythonpath",
    proves="PYTHONPATH has no empty entry and names only what is there",
    remedy="correct PYTHONPATH",
    run=_pythonpath,
)
SHADOW = Check(
    id="megatron-shadow",
    proves="no Megatron-LM that verl's wrapper puts first hides the one under test",
    remedy="move it away, or do without the wrapper's PYTHONPATH line",
    applies=wants("verl"),
    run=_shadow,
)
