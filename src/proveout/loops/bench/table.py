"""The level table of the bench loop, and which of its steps a request means."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import Artifact, Criterion, LevelRequest

NAME = "bench"
HF = "hf"


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step; see ``levels.yaml`` for the fields.

    ``minutes`` is the expected wall time, ``skip`` why the step cannot run, ``only`` the one backend that has it.
    """

    level: int
    name: str
    algorithm: str
    title: str
    claim: str
    minutes: float
    core: bool = False
    needs: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    stops_after: int | None = None
    checks: tuple[dict[str, tuple[str, ...]], ...] = ()
    criteria: tuple[Criterion, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    skip: str = ""
    only: str = ""

    @property
    def id(self) -> str:
        """The identifier of its step."""
        return f"{NAME}-L{self.level}-{self.name}"

    @property
    def expressions(self) -> dict[str, list[str]]:
        """All checks, by the boundary that is at fault where one does not hold."""
        found: dict[str, list[str]] = {}
        for group in self.checks:
            for boundary, expressions in group.items():
                found.setdefault(boundary, []).extend(expressions)
        return found


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Level titles, and the steps in the order in which they run."""

    levels: dict[int, str]
    steps: tuple[Row, ...]
    shared: tuple[Any, ...] = ()


class Overlay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What another backend changes; see ``megatron.yaml`` for the fields."""

    limitations: tuple[str, ...]
    on_gpu: tuple[str, ...]
    without_fused: tuple[str, ...]
    changes: dict[str, dict[str, Any]]
    steps: tuple[Row, ...]
    shared: tuple[Any, ...] = ()


@cache
def table(backend: str = HF) -> Table:
    """The table of ``levels.yaml``, as the ``backend`` has it."""
    plain = msgspec.convert(_read("levels"), Table)
    if backend == HF:
        return plain
    other = overlay(backend)
    rows = (row for row in plain.steps if row.only in ("", backend))
    changed = [_changed(row, other.changes.get(row.id, {})) for row in rows]
    ordered = sorted([*changed, *other.steps], key=lambda row: row.level)
    return Table(levels=plain.levels, steps=tuple(ordered))


@cache
def overlay(backend: str) -> Overlay:
    """What ``backend`` changes."""
    return msgspec.convert(_read(backend), Overlay)


def _read(name: str) -> Any:
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text())


def _changed(row: Row, changes: dict[str, Any]) -> Row:
    given = msgspec.to_builtins(row) | changes
    given["settings"] = {**row.settings, **changes.get("settings", {})}
    return msgspec.convert(given, Row)


def rows_for(request: LevelRequest, backend: str = HF) -> tuple[Row, ...]:
    """The rows of a request, those that another one needs first. Raises UsageError for an unknown variant."""
    of_level = [row for row in table(backend).steps if row.level == request.level]
    match request.variant:
        case "default":
            asked = [row for row in of_level if row.core]
        case "all":
            asked = of_level
        case name:
            asked = [row for row in of_level if row.name == name]
            known = [row.name for row in of_level]
            if not asked:
                raise UsageError(
                    f"level {request.level} of loop {NAME} has no variant {name!r}{nearest(name, known)}",
                    remedy=f"variants: default, all, {', '.join(known)}",
                )
    steps = table(backend).steps
    wanted = _with_needs({row.id for row in asked}, steps)
    return tuple(row for row in steps if row.id in wanted)


def _with_needs(ids: set[str], steps: tuple[Row, ...]) -> set[str]:
    more = {need for row in steps if row.id in ids for need in row.needs}
    return ids if more <= ids else _with_needs(ids | more, steps)
