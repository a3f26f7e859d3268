"""Which backend of the bench loop runs, in which environment, and what its reports must say."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from proveout.domain.checkout import compose_pythonpath, import_roots
from proveout.domain.errors import BlockedError, UsageError, nearest
from proveout.domain.loop import LoopContext
from proveout.domain.step import Criterion
from proveout.loops.bench.table import HF, NAME, overlay
from proveout.loops.criteria import provenance

MEGATRON, STACK = "megatron", "bridge-cpu"
BACKENDS = (HF, MEGATRON)
OPTIONS = {
    "backend": "hf or megatron",
    "python": "interpreter in place of this one's or of stack bridge-cpu's",
}
FUSED = "transformer_engine"
PACKAGES = ("proveout_bench", "proveout_cpu")
LIMITATION = "bench is the built-in loop: a pass says nothing of NeMo-RL or verl"
ON_CPU = "CPU only, backend hf: no Megatron, GPU kernel, NCCL or vLLM was exercised"
ON_GPU = "backend hf, on GPUs of one machine: no Megatron, vLLM or NeMo-RL kernel was exercised"


def backend_of(context: LoopContext) -> str:
    """As asked for; without a word ``megatron`` where a Bridge or Megatron-Core is under test, which ``hf`` would not
    run a line of. Raises UsageError for an option or a backend that is none."""
    for name in context.options:
        if name not in OPTIONS:
            raise UsageError(
                f"loop {NAME} has no option {name!r}{nearest(name, OPTIONS)}",
                remedy="options: " + "; ".join(f"{key}: {what}" for key, what in OPTIONS.items()),
            )
    named = context.options.get("backend", "")
    if named and named not in BACKENDS:
        raise UsageError(
            f"loop {NAME} has no backend {named!r}{nearest(named, BACKENDS)}",
            where="--backend",
            remedy=f"known: {', '.join(BACKENDS)}",
        )
    return named or (MEGATRON if {"bridge", "mcore"} & context.checkouts.keys() else HF)


def python_of(context: LoopContext) -> str:
    """The interpreter that runs the loop. Raises BlockedError where backend megatron has none."""
    from proveout.stacks.place import installed, root

    if named := context.options.get("python"):
        return str(Path(named).expanduser().absolute())
    if backend_of(context) == HF:
        return context.python
    place = installed(STACK, os.environ)
    if place is None:
        raise BlockedError(
            f"stack {STACK} is not installed, and backend {MEGATRON} needs it",
            where=str(root(os.environ) / STACK),
            remedy=f"make bridge, or: proveout stack install {STACK}",
        )
    return str(place.python)


def environment_of(context: LoopContext) -> dict[str, str]:
    """What the program needs besides: the trees under test in front, and this proveout's own packages.

    Nothing is written into a tree under test, compiled files neither.
    """
    if backend_of(context) == HF:
        return {}
    from proveout.stacks.place import root
    from proveout.stacks.shipped import platform_path

    roots = import_roots(context.checkouts, NAME)
    present = {module: place for module, place in roots.items() if Path(place, *module.split(".")).is_dir()}
    own = str(platform_path(root(os.environ), PACKAGES))
    return {
        "PYTHONPATH": compose_pythonpath({**present, "proveout_bench": own}, _own_path(context)),
        "OMP_NUM_THREADS": "1",
        **({} if _on_gpu(context) else {"CUDA_VISIBLE_DEVICES": ""}),
        **({"PYTHONDONTWRITEBYTECODE": "1"} if present else {}),
    }


def _own_path(context: LoopContext) -> str:
    """The import path of an interpreter that the user named may be part of it; a stack has all of its own."""
    return os.environ.get("PYTHONPATH", "") if "python" in context.options else ""


def words_of(context: LoopContext) -> list[str]:
    """The settings of the program that choose the backend."""
    backend = backend_of(context)
    return [] if backend == HF else [f"backend={backend}"]


def limitations_of(context: LoopContext) -> tuple[str, ...]:
    """What every report must say of it."""
    backend, on_gpu = backend_of(context), _on_gpu(context)
    if backend == HF:
        return (LIMITATION, ON_GPU if on_gpu else ON_CPU)
    said = overlay(backend)
    if not on_gpu:
        return said.limitations
    return said.on_gpu if _has(python_of(context), FUSED) else (*said.on_gpu, *said.without_fused)


def _on_gpu(context: LoopContext) -> bool:
    devices = [word.partition("=")[2] for word in context.overrides if word.startswith("runtime.device=")]
    return devices[-1:] == ["cuda"]


@cache
def _has(python: str, module: str) -> bool:
    """Whether the interpreter has ``module``; it is not imported."""
    asked = (
        f"import importlib.util, sys; sys.exit(0 if importlib.util.find_spec({module!r}) is not None else 1)"
    )
    try:
        return not subprocess.run([python, "-c", asked], timeout=30, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def criteria_of(context: LoopContext) -> tuple[Criterion, ...]:
    """The backend really was on, and the ranks imported the trees under test."""
    if backend_of(context) == HF:
        return ()
    return (Criterion(kind="backend", params={"expected": {"backend": MEGATRON}}), *provenance(context, NAME))
