"""The one metric table: tag -> steps -> values, with wall time, source file and attempt."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping

import msgspec


class Conflict(msgspec.Struct, frozen=True):
    """A step for which two records of one run disagree; the later record is the one kept."""

    tag: str
    step: int
    kept: float
    other: float
    source: str


class Series:
    """One tag: parallel arrays, ordered by step; at most one value a step.

    ``steps`` int64, ``values`` float64, ``wall`` float64 seconds since the epoch (NaN where unknown).
    ``source`` names the file. Tags under ``ray/`` count elapsed seconds, not steps.
    """

    __slots__ = ("source", "steps", "values", "wall")

    def __init__(
        self, steps: array[int], values: array[float], wall: array[float] | None = None, source: str = ""
    ) -> None:
        if len(steps) != len(values):
            raise ValueError(f"{len(steps)} steps for {len(values)} values")
        self.steps, self.values, self.source = steps, values, source
        self.wall = wall if wall is not None else array("d", [math.nan]) * len(steps)

    @classmethod
    def of(cls, points: Mapping[int, float], source: str = "") -> Series:
        """A series from ``{step: value}``."""
        ordered = sorted(points.items())
        return cls(
            array("q", [step for step, _ in ordered]),
            array("d", [value for _, value in ordered]),
            source=source,
        )

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.steps, self.values, strict=True)

    def as_dict(self) -> dict[int, float]:
        """``{step: value}``."""
        return dict(self)

    def non_finite_steps(self) -> list[int]:
        """Steps whose value is NaN or infinite."""
        return [step for step, value in self if not math.isfinite(value)]


class MetricTable:
    """All series of one attempt, and what reading them showed."""

    __slots__ = ("conflicts", "left_out", "series")

    def __init__(self, series: dict[str, Series] | None = None) -> None:
        self.series: dict[str, Series] = series if series is not None else {}
        self.conflicts: list[Conflict] = []
        self.left_out: list[str] = []

    def get(self, tag: str) -> Series | None:
        """The series of ``tag``, or None."""
        return self.series.get(tag)

    def tags(self) -> list[str]:
        """All tags, sorted."""
        return sorted(self.series)

    def last_step(self) -> int | None:
        """The highest training step of any series that counts steps (not ``ray/*``), or None."""
        lasts = [s.steps[-1] for tag, s in self.series.items() if len(s) and not tag.startswith("ray/")]
        return max(lasts, default=None)
