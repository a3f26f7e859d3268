"""Which series of a table play which part in learning, by loop; the names stand in ``data/roles.toml``."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from proveout.domain.metrics import MetricTable, Series

_SAME_NAMES = {"bench": "nemo-rl"}


@cache
def _roles() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(files("proveout.judge").joinpath("data/roles.toml").read_text())


def patterns(role: str, loop: str) -> list[str]:
    """Tags and globs of ``role`` in ``loop``; every loop's where the loop is not named in the data."""
    by_loop = _roles()[role]
    loop = _SAME_NAMES.get(loop, loop)
    if loop in by_loop:
        return by_loop[loop]
    return list(dict.fromkeys(tag for tags in by_loop.values() for tag in tags))


def playing(role: str, loop: str, table: MetricTable) -> dict[str, Series]:
    """The non-empty series of ``table`` that play ``role``, in the order of the data."""
    found: dict[str, Series] = {}
    for pattern in patterns(role, loop):
        tags = [pattern] if pattern in table.series else []
        if "*" in pattern:
            tags = [tag for tag in table.tags() if fnmatchcase(tag, pattern)]
        found |= {tag: table.series[tag] for tag in tags if len(table.series[tag])}
    return found
