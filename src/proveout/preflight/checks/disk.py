"""Free disk where the run will write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from proveout.assets import places
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, blocked, warning
from proveout.preflight.loops import needs_stack, size

GIB = 1024**3


def run(context: PreflightContext) -> Iterator[Finding]:
    """The run directory blocks when a run of its kind cannot fit; caches and temporary files warn."""
    needed = limits.number(context, f"disk.run_{size(context)}_gib")
    yield from _short(context, "run directory", Path(context.run_dir), needed, decides=True)
    if needs_stack(context):
        cache = limits.number(context, "disk.cache_stack_gib")
        temp = limits.number(context, "disk.temp_stack_gib")
        yield from _short(context, "HF_HOME", places.hf_home(context.env), cache)
        yield from _short(context, "conversion cache", places.conversion_cache(context.env), cache)
        yield from _short(context, "Ray temporary directory", places.ray_temp(context.env), temp)


def _short(
    context: PreflightContext, what: str, path: Path, needed_gib: float, *, decides: bool = False
) -> Iterator[Finding]:
    place = places.existing(path)
    free = shutil.disk_usage(place).free / GIB
    if free >= needed_gib:
        return
    say = blocked if decides else warning
    yield say(
        "disk.free",
        f"{what}: {free:.2f} GiB free, {needed_gib:g} GiB wanted",
        where=Where(file=str(place)),
        remedy="free space there, or point the run at another disk",
    )


CHECK = Check(
    id="disk",
    proves="there is room for the run directory, and for model caches and Ray's files where a loop uses them",
    remedy="free space, or move the run directory, HF_HOME, NRL_MEGATRON_CHECKPOINT_DIR or RAY_TMPDIR",
    run=run,
)
