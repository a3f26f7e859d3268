"""What special steps need besides: modelopt for quantised ones, nsys for profiling, an account for wandb."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from proveout.assets import places
from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, workers
from proveout.preflight.check import Check, Cost, blocked
from proveout.preflight.checks import gpus
from proveout.preflight.loops import STACK, needs_stack

QUANTISED = ("modelopt", "quant")
OFFLINE_MODES = frozenset({"offline", "disabled", "dryrun"})
OFF = frozenset({"null", "none", "[]", ""})


def _words(context: PreflightContext) -> Iterator[tuple[str, str]]:
    for step in context.running:
        for word in step.command.argv:
            yield step.coverage.loop, word


def _quantised(context: PreflightContext) -> set[str]:
    off = ("=null", "=none", "=false", "disabled")
    return {
        loop
        for loop, word in _words(context)
        if any(name in word.lower() for name in QUANTISED) and not word.lower().endswith(off)
    } & STACK


def _modelopt(context: PreflightContext) -> Iterator[Finding]:
    loops = _quantised(context)
    for worker in workers.of_run(context):
        if worker.loop not in loops:
            continue
        try:
            found = interpreters.report(context, worker)["modules"]["modelopt"]["origin"]
        except BlockedError:
            continue  # the python check says so
        if found is None:
            yield blocked(
                "modelopt.absent",
                f"a step is quantised, and {worker.name} has no modelopt",
                where=Where(file=worker.argv[0], key="modelopt"),
                remedy="install nvidia-modelopt in that environment (NeMo-RL: its modelopt extra)",
            )


def _profiled(context: PreflightContext) -> str:
    """What asks for nsys, or nothing. verl's wrapper does, with CUDA, unless PROFILE_STEPS is null."""
    if "nemo-rl" in context.wanted and context.environment("nemo-rl").get("NRL_NSYS_WORKER_PATTERNS"):
        return "NRL_NSYS_WORKER_PATTERNS"
    if "verl" in context.wanted and gpus.wanted(context):
        steps = context.environment("verl").get("PROFILE_STEPS", "[1]")
        if steps.lower() not in OFF and workers.wrapped(context):
            return "PROFILE_STEPS"
    return ""


def _nsys(context: PreflightContext) -> Iterator[Finding]:
    asked_by = _profiled(context)
    loop = "nemo-rl" if asked_by.startswith("NRL") else "verl"
    if shutil.which("nsys", path=context.environment(loop).get("PATH", "")) is None:
        yield blocked(
            "nsys.absent",
            f"{asked_by} asks Ray for the nsight environment, and nsys is not on PATH: no worker would start",
            where=Where(key=asked_by),
            remedy="PROFILE_STEPS=null for verl, unset NRL_NSYS_WORKER_PATTERNS for NeMo-RL, or install nsys",
        )


def _logs_to_wandb(context: PreflightContext) -> set[str]:
    wanted = set()
    for loop, word in _words(context):
        key, _, value = word.lstrip("+").partition("=")
        on = key.endswith("wandb_enabled") and value.lower() == "true"
        if on or (key == "trainer.logger" and "wandb" in value) or word == "--report_to=wandb":
            wanted.add(loop)
    return wanted


def _keyed(env: Mapping[str, str]) -> bool:
    netrc = Path(env.get("NETRC") or places.home(env) / ".netrc")
    try:
        known = "api.wandb.ai" in netrc.read_text(encoding="utf-8", errors="replace")
    except OSError:
        known = False
    quiet = (
        env.get("WANDB_MODE", "").lower() in OFFLINE_MODES or env.get("WANDB_DISABLED", "").lower() == "true"
    )
    return bool(env.get("WANDB_API_KEY")) or quiet or known


def _wandb(context: PreflightContext) -> Iterator[Finding]:
    for loop in sorted(_logs_to_wandb(context)):
        if not _keyed(context.environment(loop)):
            yield blocked(
                "wandb.no-key",
                f"{loop} logs to wandb without a key: it would ask for one, or stop",
                where=Where(key="WANDB_API_KEY"),
                remedy="set WANDB_MODE=offline, give a key, or take wandb out of the loggers",
            )


MODELOPT = Check(
    id="modelopt",
    proves="modelopt is there for the workers of quantised steps",
    remedy="install nvidia-modelopt in the workers' environment",
    cost=Cost.FAST,
    applies=lambda context: needs_stack(context) and bool(_quantised(context)),
    run=_modelopt,
)
NSYS = Check(
    id="nsys",
    proves="nsys is there when profiling asks for it",
    remedy="PROFILE_STEPS=null, or install nsys",
    applies=lambda context: bool(_profiled(context)),
    run=_nsys,
)
WANDB = Check(
    id="wandb",
    proves="wandb is off, offline, or has a key",
    remedy="WANDB_MODE=offline, or a key",
    applies=lambda context: bool(_logs_to_wandb(context)),
    run=_wandb,
)
