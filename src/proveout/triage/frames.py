"""Whose code raised an exception that no rule knows."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from proveout.domain.finding import Boundary
from proveout.triage.cache import cached, read_yaml
from proveout.triage.traces import Trace

_DATA = Path(__file__).with_name("frames.yaml")


class Owner(NamedTuple):
    """The boundary whose code an exception came from, and the frame that says so ("" for the class alone)."""

    boundary: Boundary
    subkind: str
    frame: str


class _Table:
    def __init__(self, data: dict[str, Any]) -> None:
        self.neutral = re.compile("|".join(f"(?:{pattern})" for pattern in data["neutral"]))
        self.boundaries = [_row(row) for row in data["boundaries"]]
        self.exceptions = [_row(row) for row in data["exceptions"]]
        self.own = re.compile(data["own"])


def _row(row: dict[str, str]) -> tuple[re.Pattern[str], Boundary, str]:
    return re.compile(row["match"]), Boundary(row["boundary"]), row["subkind"]


@lru_cache(maxsize=1)
def _table() -> _Table:
    return _Table(cached("frames", [_DATA], read_yaml, dict[str, Any]))


def owner(name: str, trace: Trace | None) -> Owner | None:
    """Who is at fault for an exception of class ``name``: by its class, else by the deepest frame that says."""
    table = _table()
    for pattern, boundary, subkind in table.exceptions:
        if pattern.search(name):
            return Owner(boundary, subkind, "")
    for file, function in reversed(trace.frames if trace else []):
        if table.neutral.search(file):
            continue
        place = f"{file}:{function}"
        for pattern, boundary, subkind in table.boundaries:
            if pattern.search(place):
                return Owner(boundary, subkind, place)
    own = next((f"{f}:{n}" for f, n in reversed(trace.frames if trace else []) if table.own.search(f)), "")
    return Owner(Boundary.TRAINER, "script", own) if own else None
