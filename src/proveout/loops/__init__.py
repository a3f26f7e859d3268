"""Loops: what a level means there, how its command is built, how its evidence reads.

A new loop is one package with a ``LOOP`` and one line here.
"""

from __future__ import annotations

from importlib import import_module

from proveout.domain.errors import UsageError, nearest
from proveout.domain.loop import Loop

LOOPS: dict[str, str] = {
    "bench": "proveout.loops.bench",
    "nemo-rl": "proveout.loops.nemo_rl",
    "verl": "proveout.loops.verl",
    "trl": "proveout.loops.trl",
}


def get(name: str) -> Loop:
    """The loop of this name. Raises UsageError that names the nearest known loop."""
    if name not in LOOPS:
        raise UsageError(f"no loop {name!r}{nearest(name, LOOPS)}", remedy=f"known loops: {', '.join(LOOPS)}")
    loop: Loop = import_module(LOOPS[name]).LOOP
    return loop
