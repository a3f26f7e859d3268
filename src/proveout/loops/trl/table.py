"""The level table of loop trl, and which of its steps a request means."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import Artifact, Criterion, LevelRequest

NAME = "trl"


class Resumes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run that went through, and the one whose checkpoint is resumed, by step id."""

    baseline: str
    saved: str


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step; see ``levels.yaml`` for the fields. ``minutes`` is the expected wall time."""

    level: int
    name: str
    algorithm: str
    title: str
    claim: str
    settings: dict[str, Any]
    minutes: float = 0.3
    warm: int = 0
    core: bool = False
    needs: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    resumes: Resumes | None = None
    limitations: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The identifier of its step."""
        return f"{NAME}-L{self.level}-{self.name}"


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Level titles, and the steps in the order in which they run."""

    levels: dict[int, str]
    steps: tuple[Row, ...]


@cache
def table() -> Table:
    """The table of ``levels.yaml``."""
    return msgspec.convert(yaml.safe_load((files(__package__) / "levels.yaml").read_text()), Table)


def rows_for(request: LevelRequest) -> tuple[Row, ...]:
    """The rows of a request, those that another one needs first. Raises UsageError for an unknown variant."""
    of_level = [row for row in table().steps if row.level == request.level]
    asked = {
        row.id
        for row in of_level
        if request.variant in ("all", row.name) or (request.variant == "default" and row.core)
    }
    if not asked:
        known = [row.name for row in of_level]
        raise UsageError(
            f"level {request.level} of loop {NAME} has no variant {request.variant!r}"
            f"{nearest(request.variant, known)}",
            remedy=f"variants: default, all, {', '.join(known)}",
        )
    wanted = asked | {need for row in of_level if row.id in asked for need in row.needs}
    return tuple(row for row in table().steps if row.id in wanted)
