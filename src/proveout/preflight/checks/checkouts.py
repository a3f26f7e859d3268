"""The checkouts are what their roles say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, blocked
from proveout.preflight.loops import has_checkout

SIGN = {
    "bridge": "src/megatron/bridge/__init__.py",
    "mcore": "megatron/core/__init__.py",
    "nemo-rl": "nemo_rl/__init__.py",
    "verl": "verl/__init__.py",
}


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding for each path that is no directory or holds something else."""
    for role, path in sorted(context.checkouts.items()):
        sign = SIGN.get(role)
        if sign is None or (Path(path) / sign).is_file():
            continue
        what = f"holds no {sign}" if Path(path).is_dir() else "is not a directory"
        yield blocked(
            "checkouts.not-it",
            f"the {role} checkout {what}",
            where=Where(file=path),
            remedy=f"name the root of a {role} source tree (--{role})",
        )


CHECK = Check(
    id="checkouts",
    proves="each checkout is the source tree that its role names",
    remedy="name the root of the source tree",
    applies=has_checkout(*SIGN),
    run=run,
)
