"""VERL_USE_UV: whether the environment in which verl runs is the one that was prepared."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import workers
from proveout.preflight.check import Check, blocked, warning
from proveout.preflight.loops import wants

KEY = Where(key="VERL_USE_UV")


def run(context: PreflightContext) -> Iterator[Finding]:
    """uv is missing though it is to be used, or it would run a locked Bridge in place of the checkout."""
    if not workers.uses_uv(context):
        return
    env = context.environment("verl")
    if shutil.which("uv", path=env.get("PATH", "")) is None:
        yield blocked(
            "verl-uv.missing",
            "verl's wrapper starts everything through uv, which is not on PATH",
            where=KEY,
            remedy="set VERL_USE_UV=0 where the image's own Python is prepared, or install uv",
        )
    bridge = context.checkouts.get("bridge")
    source = str(Path(bridge).resolve() / "src") if bridge else ""
    path = [str(Path(entry).resolve()) for entry in env.get("PYTHONPATH", "").split(":") if entry]
    if bridge and source not in path:
        yield warning(
            "verl-uv.locked",
            "under uv run --frozen verl imports the Megatron-Bridge of its lock file, not an installed one",
            where=KEY,
            remedy=f"put {bridge}/src on PYTHONPATH, or set VERL_USE_UV=0",
        )


CHECK = Check(
    id="verl-uv",
    proves="verl runs in the environment that was prepared: through uv where uv is there, or without it",
    remedy="set VERL_USE_UV to what the image was made for",
    applies=wants("verl"),
    run=run,
)
