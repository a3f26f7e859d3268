"""Joins the tables of several sources, and says where records disagree."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from proveout.capture.reading import SHOWN
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.metrics import Conflict, MetricTable, Series

ROUNDING = 1e-2


def join(table: MetricTable, other: MetricTable) -> list[Conflict]:
    """Add ``other`` to ``table`` and return where they disagree. The values of ``table`` stay.

    Sources round differently, so that only a relative difference above 1e-2, or a value that is finite in one
    of them alone, is a conflict.
    """
    found: list[Conflict] = []
    for tag, series in other.series.items():
        mine = table.series.get(tag)
        table.series[tag] = series if mine is None else _both(tag, mine, series, found)
    table.conflicts += [*other.conflicts, *found]
    table.left_out += other.left_out
    return found


def _both(tag: str, mine: Series, other: Series, conflicts: list[Conflict]) -> Series:
    points = {
        step: (value, wall) for step, value, wall in zip(other.steps, other.values, other.wall, strict=True)
    }
    for step, value, wall in zip(mine.steps, mine.values, mine.wall, strict=True):
        if step in points and _disagree(value, points[step][0]):
            conflicts.append(Conflict(tag, step, value, points[step][0], other.source))
        points[step] = (value, wall)
    ordered = sorted(points.items())
    return Series(
        array("q", [step for step, _ in ordered]),
        array("d", [value for _, (value, _) in ordered]),
        array("d", [wall for _, (_, wall) in ordered]),
        mine.source,
    )


def _disagree(one: float, other: float) -> bool:
    if math.isfinite(one) and math.isfinite(other):
        return not math.isclose(one, other, rel_tol=ROUNDING, abs_tol=1e-6)
    return not (one == other or (math.isnan(one) and math.isnan(other)))


def as_findings(conflicts: Sequence[Conflict]) -> list[Finding]:
    """One finding a tag with the first steps that disagree; the tags after the first 20 in one finding."""
    by_tag: dict[str, list[Conflict]] = {}
    for conflict in conflicts:
        by_tag.setdefault(conflict.tag, []).append(conflict)
    findings = [_finding(tag, found) for tag, found in list(by_tag.items())[:SHOWN]]
    rest = list(by_tag)[SHOWN:]
    if rest:
        findings.append(
            Finding(
                id="capture.metrics.conflict",
                severity=Severity.WARNING,
                what=f"{len(rest)} more tags hold steps with two values: {', '.join(rest)[:500]}",
            )
        )
    return findings


def _finding(tag: str, found: Sequence[Conflict]) -> Finding:
    steps = ", ".join(str(conflict.step) for conflict in found[:10]) + (", ..." if len(found) > 10 else "")
    return Finding(
        id="capture.metrics.conflict",
        severity=Severity.WARNING,
        what=f"two records disagree at {len(found)} step(s) ({steps}); the kept value is named first",
        where=Where(metric=tag, step=found[0].step),
        remedy="clear the log directory between runs, or read the runs one by one",
        evidence=tuple(
            Citation(
                what=f"{conflict.kept!r} kept, {conflict.other!r} not",
                where=Where(file=conflict.source, metric=tag, step=conflict.step),
            )
            for conflict in found[:10]
        ),
    )
