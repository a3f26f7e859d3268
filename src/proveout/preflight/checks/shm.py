"""Shared memory, which Ray's object store, NCCL and data loaders use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, warning
from proveout.preflight.loops import needs_stack

GIB = 1024**3


def run(context: PreflightContext) -> Iterator[Finding]:
    """None, or too little: containers get 64 MiB unless told otherwise."""
    place = Path(limits.text(context, "shm.path"))
    wanted = limits.number(context, "shm.stack_gib")
    free = shutil.disk_usage(place).free / GIB if place.is_dir() else 0.0
    if free < wanted:
        yield warning(
            "shm.small",
            f"{free:.2f} GiB of shared memory free, {wanted:g} GiB wanted",
            where=Where(file=str(place)),
            remedy="start the container with --shm-size or --ipc=host, or remove what is left there",
        )


CHECK = Check(
    id="shm",
    proves="there is shared memory for Ray's object store, NCCL and data loaders",
    remedy="--shm-size=16g or --ipc=host for a container",
    applies=needs_stack,
    run=run,
)
