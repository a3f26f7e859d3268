"""What every sign looks at: the series by role, and the thresholds of this step."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from proveout.domain.errors import UsageError, nearest
from proveout.domain.evidence import Evidence
from proveout.domain.finding import Citation, Finding
from proveout.domain.metrics import Series
from proveout.judge import roles


class Said(NamedTuple):
    """What one sign says: findings where something is wrong, citations of what shows that it is not."""

    findings: tuple[Finding, ...] = ()
    held: tuple[Citation, ...] = ()


@cache
def defaults() -> dict[str, float]:
    """All thresholds by name, from ``data/thresholds.toml``."""
    return tomllib.loads(files("proveout.judge").joinpath("data/thresholds.toml").read_text())


class View:
    """The evidence of an attempt as the signs read it."""

    def __init__(self, evidence: Evidence, thresholds: Mapping[str, float]) -> None:
        unknown = [name for name in thresholds if name not in defaults()]
        if unknown:
            raise UsageError(
                f"no threshold {unknown[0]!r}{nearest(unknown[0], defaults())}",
                where="criteria.learning_signal",
            )
        self.evidence = evidence
        self.changed = dict(thresholds)
        self._thresholds = defaults() | dict(thresholds)

    def threshold(self, name: str) -> float:
        """One threshold."""
        return self._thresholds[name]

    def role(self, *names: str) -> dict[str, Series]:
        """The non-empty series that play one of the roles, by tag."""
        loop, table = self.evidence.step.coverage.loop, self.evidence.metrics
        return {tag: s for name in names for tag, s in roles.playing(name, loop, table).items()}
