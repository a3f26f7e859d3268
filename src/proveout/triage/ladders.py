"""Isolation ladders: which re-runs, each with one thing changed, separate the boundaries; read from data files.

A file of ``ladders/`` has ``rungs`` and ``ladders``. A rung says what to change in each loop that has such a
setting, and what a flip proves; a ladder says for which failures its rungs are tried, and in which order.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from proveout.domain.errors import UsageError
from proveout.domain.finding import Boundary
from proveout.triage.relaxations import refuse

LADDERS_DIR = Path(__file__).parent / "ladders"


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one loop's command gets.

    ``words`` are override words (the earlier word of the same key goes), ``env`` variables to set, ``unset``
    variables to take away. ``halve`` are configuration keys that get half their value, down to the given one;
    ``multiply`` are keys that get the product of other keys' values.
    ``needs`` and ``refuses`` are values in the failed run's resolved configuration. ``without`` names criteria
    and ``without_artifacts`` patterns of artifacts that only the changed setting makes possible.
    """

    words: tuple[str, ...] = ()
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    halve: dict[str, int] = {}
    multiply: dict[str, tuple[str, ...]] = {}
    needs: dict[str, Any] = {}
    refuses: dict[str, Any] = {}
    without: tuple[str, ...] = ()
    without_artifacts: tuple[str, ...] = ()


class Rung(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One re-run: ``proves`` and ``does_not_prove`` say what it means when the run passes with the change."""

    id: str
    title: str
    proves: str
    does_not_prove: str
    loops: dict[str, Change]
    limitation: str = ""


class Ladder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rungs in order for failures of ``boundaries``; ``subkinds`` are patterns, ``findings`` prefixes of ids.

    Where ``subkinds``, ``metrics`` (patterns) or ``stages`` are given, one of the former two, and the stage, must
    fit; ``findings`` fit whatever the boundary is.
    """

    id: str
    boundaries: tuple[Boundary, ...]
    rungs: tuple[str, ...]
    subkinds: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a failed attempt; ``findings`` are the ids of those that decided, ``metrics`` what they name."""

    loop: str
    boundary: Boundary
    subkind: str = ""
    stage: str = ""
    findings: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


class Ladders(msgspec.Struct, frozen=True):
    """All rungs by id, and all ladders in the order of their files."""

    rungs: dict[str, Rung]
    ladders: tuple[Ladder, ...]

    def fitting(self, failure: Failure) -> tuple[Ladder, ...]:
        """The ladders of a failure, that which says most of it first; ``any`` comes last."""
        scored = [(self._fit(ladder, failure), ladder) for ladder in self.ladders]
        return tuple(
            ladder for fit, ladder in sorted(scored, key=lambda pair: -pair[0]) if fit and ladder.rungs
        )

    def climb(self, failure: Failure) -> tuple[Rung, ...]:
        """Every rung of the fitting ladders that the loop has, in order, each once."""
        names = dict.fromkeys(name for ladder in self.fitting(failure) for name in ladder.rungs)
        return tuple(self.rungs[name] for name in names if failure.loop in self.rungs[name].loops)

    @staticmethod
    def _fit(ladder: Ladder, failure: Failure) -> int:
        by_finding = any(name.startswith(prefix) for prefix in ladder.findings for name in failure.findings)
        by_kind = _any_fits([failure.subkind], ladder.subkinds) or _any_fits(failure.metrics, ladder.metrics)
        if by_finding:
            return 8
        if failure.boundary not in ladder.boundaries or ((ladder.subkinds or ladder.metrics) and not by_kind):
            return 0
        if ladder.stages and failure.stage not in ladder.stages:
            return 0
        return 1 if ladder.id == "any" else 2 + 4 * by_kind + 2 * bool(ladder.stages)


def _any_fits(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rungs: tuple[Rung, ...] = ()
    ladders: tuple[Ladder, ...] = ()


@cache
def load() -> Ladders:
    """The shipped ladders."""
    return read(sorted(LADDERS_DIR.glob("*.yaml")))


def read(paths: Iterable[Path]) -> Ladders:
    """Ladders from files.

    Raises:
        UsageError: a file does not read, a rung is named twice or not there, or a rung would relax a criterion.
    """
    rungs: dict[str, Rung] = {}
    ladders: list[Ladder] = []
    for path in paths:
        try:
            found = msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), _File)
        except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
            raise UsageError(f"not readable as ladders: {error}", where=str(path)) from error
        for rung in found.rungs:
            if rung.id in rungs:
                raise UsageError(f"two rungs have the id {rung.id!r}", where=str(path), remedy="rename one")
            for change in rung.loops.values():
                refuse(
                    rung.id, change.words, change.env, change.unset, change.without, change.without_artifacts
                )
                refuse(rung.id, (*change.halve, *change.multiply), {}, (), (), ())
            rungs[rung.id] = rung
        ladders += found.ladders
    for ladder in ladders:
        if unknown := [name for name in ladder.rungs if name not in rungs]:
            raise UsageError(f"ladder {ladder.id!r} names rungs that are none: {', '.join(unknown)}")
    return Ladders(rungs, tuple(ladders))
