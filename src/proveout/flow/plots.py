"""The series that a report plots: thinned, offending steps marked, a baseline beside them where there is one."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Severity, Where
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.report import PlotSeries
from proveout.judge.roles import playing

TAGS_A_PLOT = 2
POINTS_A_SERIES = 200
POINTS_IN_ALL = 24_000


@cache
def layout() -> dict[str, Any]:
    """What ``plots.toml`` says."""
    return tomllib.loads(files("proveout.flow").joinpath("plots.toml").read_text())


@cache
def _timing() -> dict[str, Any]:
    return tomllib.loads(files("proveout.judge").joinpath("data/refit.toml").read_text())


def plots(
    step_id: str,
    loop: str,
    attempt: AttemptResult,
    table: MetricTable,
    baseline: MetricTable | None,
    *,
    share: int = 1,
) -> Iterator[PlotSeries]:
    """The plotted series of one attempt, and of ``baseline`` under the same tags.

    ``share`` is the number of steps that share the report, so that the whole stays small.
    """
    marks = offending(attempt)
    most = max(20, min(POINTS_A_SERIES, POINTS_IN_ALL // (share * 2 * len(layout()["plot"]))))
    for row in layout()["plot"]:
        found = playing(row["role"], loop, table) if "role" in row else _timed(row["timing"], table)
        for tag, series in list(found.items())[:TAGS_A_PLOT]:
            marked = tuple(step for step in sorted(marks.get(tag, ())) if step in set(series.steps))
            for role, one, at in (("candidate", series, marked), ("baseline", _of(baseline, tag), ())):
                if one is not None and len(one):
                    kept = thinned(one, most, at)
                    yield PlotSeries(
                        step_id=step_id,
                        tag=tag,
                        steps=tuple(one.steps[i] for i in kept),
                        values=tuple(_finite(one.values[i]) for i in kept),
                        marked=at,
                        role=role,
                        plot=row["title"],
                        unit=row.get("unit", ""),
                        total=len(one),
                    )


def offending(attempt: AttemptResult) -> dict[str, set[int]]:
    """Steps that findings point at, by metric tag."""
    places: list[Where] = []
    for finding in attempt.findings:
        if finding.severity is not Severity.NOTICE:
            places += [finding.where, *(cited.where for cited in finding.evidence)]
    if attempt.triage is not None and attempt.triage.cause is not None:
        places.append(attempt.triage.cause.where)
    found: dict[str, set[int]] = {}
    for place in places:
        if place.metric and place.step is not None:
            found.setdefault(place.metric, set()).add(place.step)
    return found


def thinned(series: Series, most: int, keep: Iterable[int] = ()) -> list[int]:
    """Indices of about ``most`` points: the ends, ``keep``, values that are not finite, and each part's extremes."""
    count = len(series)
    if count <= most:
        return list(range(count))
    wanted = set(keep)
    chosen = {0, count - 1, *(i for i, step in enumerate(series.steps) if step in wanted)}
    broken = [i for i, value in enumerate(series.values) if not math.isfinite(value)]
    chosen.update(broken[:: max(1, len(broken) // max(1, most // 4))])
    parts = max(1, most // 2)
    for part in range(parts):
        inside = [
            i
            for i in range(part * count // parts, (part + 1) * count // parts)
            if math.isfinite(series.values[i])
        ]
        if inside:
            chosen.add(min(inside, key=series.values.__getitem__))
            chosen.add(max(inside, key=series.values.__getitem__))
    return sorted(chosen)


def _timed(name: str, table: MetricTable) -> dict[str, Series]:
    found = {tag: table.series[tag] for tag in _timing()[name]["tags"] if tag in table.series}
    return dict(list(found.items())[:1])


def _of(table: MetricTable | None, tag: str) -> Series | None:
    return table.get(tag) if table is not None else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
