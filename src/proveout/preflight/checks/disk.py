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
    own = f"disk.run_{size(context)}_gib"
    yield from _short(context, "run directory", Path(context.run_dir), own, decides=True)
    if needs_stack(context):
        cache, env = "disk.cache_stack_gib", context.env
        yield from _short(context, "HF_HOME", places.hf_home(env), cache)
        yield from _short(context, "conversion cache", places.conversion_cache(env), cache)
        yield from _short(context, "Ray temporary directory", places.ray_temp(env), "disk.temp_stack_gib")


def _short(
    context: PreflightContext, what: str, path: Path, name: str, *, decides: bool = False
) -> Iterator[Finding]:
    needed_gib = limits.number(context, name)
    place = places.existing(path)
    free = shutil.disk_usage(place).free / GIB
    if free >= needed_gib:
        return
    say = blocked if decides else warning
    yield say(
        "disk.free",
        f"{what}: {free:.2f} GiB free, {needed_gib:g} GiB wanted",
        where=Where(file=str(place)),
        remedy=f"free space there, point the run at another disk, or give the limit {name} in {limits.VARIABLE}",
    )


CHECK = Check(
    id="disk",
    proves="there is room for the run directory, and for model caches and Ray's files where a loop uses them",
    remedy="free space, or move the run directory, HF_HOME, NRL_MEGATRON_CHECKPOINT_DIR or RAY_TMPDIR",
    run=run,
)
