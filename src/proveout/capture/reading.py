"""What one pass over one metric file gave: points per tag in the order they were written, and findings."""

from __future__ import annotations

from array import array

from proveout.domain.finding import Finding, Severity, Where

SHOWN = 20
SECONDS_PREFIX = "ray/"


class Points:
    """One tag as it was written: parallel arrays, in file order, steps possibly repeated."""

    __slots__ = ("steps", "values", "wall")

    def __init__(self) -> None:
        self.steps: array[int] = array("q")
        self.values: array[float] = array("d")
        self.wall: array[float] = array("d")

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, value: float, wall: float) -> None:
        """Append one point."""
        self.steps.append(step)
        self.values.append(value)
        self.wall.append(wall)

    def extend(self, steps: bytes, values: bytes, wall: bytes) -> None:
        """Append many points given as native int64, float64 and float64 bytes."""
        self.steps.frombytes(steps)
        self.values.frombytes(values)
        self.wall.frombytes(wall)

    def after(self, step: int) -> Points:
        """A copy of the points later than ``step``."""
        kept = Points()
        for at, value, wall in zip(self.steps, self.values, self.wall, strict=True):
            if at > step:
                kept.add(at, value, wall)
        return kept

    def drop_from(self, step: int) -> int:
        """Remove the points at ``step`` or later and return how many there were."""
        keep = [i for i, at in enumerate(self.steps) if at < step]
        dropped = len(self.steps) - len(keep)
        if dropped:
            self.steps = array("q", [self.steps[i] for i in keep])
            self.values = array("d", [self.values[i] for i in keep])
            self.wall = array("d", [self.wall[i] for i in keep])
        return dropped


class Reading:
    """The points of one run of writing in one file.

    ``source`` names the file; ``started`` and ``ended`` are epoch seconds of the first and last record, or of
    the file itself where records carry no time; ``other_tags`` hold no scalars (images, histograms, text).
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.points: dict[str, Points] = {}
        self.other_tags: set[str] = set()
        self.findings: list[Finding] = []
        self.started: float | None = None
        self.ended: float | None = None
        self._counts: dict[str, int] = {}

    def add(self, tag: str, step: int, value: float, wall: float) -> None:
        """Append one point to ``tag``."""
        points = self.points.get(tag)
        if points is None:
            points = self.points[tag] = Points()
        points.add(step, value, wall)

    def seen(self, first: float, last: float) -> None:
        """Widen the time that the reading spans."""
        self.started = first if self.started is None else min(self.started, first)
        self.ended = last if self.ended is None else max(self.ended, last)

    def note(
        self,
        kind: str,
        what: str,
        *,
        severity: Severity = Severity.WARNING,
        offset: int | None = None,
        line: int | None = None,
        metric: str | None = None,
        step: int | None = None,
        remedy: str = "",
    ) -> None:
        """Record a finding ``capture.KIND``; after the first 20 of a kind only their number is kept."""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count <= SHOWN:
            where = Where(file=self.source, offset=offset, line=line, metric=metric, step=step)
            self.findings.append(
                Finding(id=f"capture.{kind}", severity=severity, what=what, where=where, remedy=remedy)
            )

    def all_findings(self) -> list[Finding]:
        """The findings, with one more for each kind of which only the first ones were kept."""
        more = [
            Finding(
                id=f"capture.{kind}",
                severity=Severity.WARNING,
                what=f"{count - SHOWN} more of the same kind in this file",
                where=Where(file=self.source),
            )
            for kind, count in self._counts.items()
            if count > SHOWN
        ]
        return self.findings + more

    def training_alone(self) -> Reading:
        """The part of this reading that a later run of the same training adds to.

        Step 0 (the setup of each start) and tags that count seconds since a start are left out.
        """
        part = Reading(self.source)
        part.started, part.ended = self.started, self.ended
        for tag, points in self.points.items():
            kept = Points() if tag.startswith(SECONDS_PREFIX) else points.after(0)
            if len(kept):
                part.points[tag] = kept
        return part

    def step_span(self) -> tuple[int, int] | None:
        """First and last training step; step 0 (setup) and tags that count seconds say nothing of it."""
        first: int | None = None
        last = 0
        for tag, points in self.points.items():
            if tag.startswith(SECONDS_PREFIX):
                continue
            highest = max(points.steps, default=0)
            if highest > 0:
                low = min(points.steps)
                low = low if low > 0 else min(step for step in points.steps if step > 0)
                first = low if first is None else min(first, low)
                last = max(last, highest)
        return None if first is None else (first, last)
