"""Submodules that are not there, or not at the commit that the tree pins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import git
from proveout.preflight.check import Check, Cost, notice, warning
from proveout.preflight.loops import has_checkout

CONSEQUENCE = {
    "3rdparty/Megatron-LM": "Python silently takes megatron.core from somewhere else",
    "3rdparty/Megatron-Bridge-workspace/Megatron-Bridge": "NeMo-RL's own Megatron-Bridge cannot be imported",
}


def run(context: PreflightContext) -> Iterator[Finding]:
    """Empty submodules, and those whose checked-out commit is another than the pinned one."""
    for role, checkout in sorted(context.checkouts.items()):
        for path, pinned in git.submodules(checkout).items():
            place = Path(checkout) / path
            where = Where(file=str(place))
            if git.filled(checkout, path):
                yield from _moved(role, place, path, pinned)
            elif path in CONSEQUENCE:
                yield warning(
                    "submodules.empty",
                    f"{role}: the submodule {path} is not initialised: {CONSEQUENCE[path]}",
                    where=where,
                    remedy=f"git -C {checkout} submodule update --init {path}, or name another checkout",
                )
            else:
                yield notice(
                    "submodules.empty", f"{role}: the submodule {path} is not initialised", where=where
                )


def _moved(role: str, place: Path, path: str, pinned: str) -> Iterator[Finding]:
    if not pinned or not (place / ".git").exists():
        return
    try:
        here = git.ask(str(place), "rev-parse", "HEAD").strip()
    except BlockedError:
        return
    if here != pinned:
        yield warning(
            "submodules.moved",
            f"{role}: the submodule {path} is at {here[:9]}, the tree pins {pinned[:9]}",
            where=Where(file=str(place)),
            remedy="update it, or say in the report that this combination was tested",
        )


CHECK = Check(
    id="submodules",
    proves="the submodules of the checkouts are there, at the commits that the trees pin",
    remedy="git submodule update --init, in the checkout",
    cost=Cost.FAST,
    applies=has_checkout("bridge", "mcore", "nemo-rl", "verl"),
    run=run,
)
