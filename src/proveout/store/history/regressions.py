"""What moved in the newest runs, held against the good runs before them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from proveout.store.history.records import MetricRow, StepRow
from proveout.store.history.robust import Rule, Spread, Worse, band, finite, spread, worse_of

SECONDS = "seconds"


class State(StrEnum):
    """What is said of a value. UNDECIDED: too few good runs before it."""

    STEADY = "steady"
    IMPROVED = "improved"
    REGRESSED = "regressed"
    UNDECIDED = "undecided"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One value of the newest run against the earlier ones: ``values`` oldest first, the newest last.

    ``tag`` is a metric, or ``seconds`` for how long the step ran. ``before`` names the newest earlier run.
    """

    coverage: str
    model: str
    tag: str
    state: State
    worse: Worse
    run: str
    before: str = ""
    values: tuple[float | None, ...] = ()
    baseline: Spread | None = None
    band: float | None = None
    reason: str = ""


class _Point(msgspec.Struct, frozen=True):
    """One value of one run; ``good`` when that run's step passed."""

    run: str
    value: float | None
    good: bool


def recent(rows: Iterable[StepRow], rule: Rule) -> set[str]:
    """The runs that count: of each recipe the newest, and the last ``rule.last`` good ones before it."""
    groups: dict[tuple[str, str, str], list[StepRow]] = {}
    for row in rows:
        groups.setdefault((_coverage(row), row.model, row.recipe), []).append(row)
    found: set[str] = set()
    for *earlier, newest in groups.values():
        good = [row for row in earlier if row.verdict == "Pass"][-rule.last :]
        found |= {row.run for row in (*good, newest)}
    return found


def of_metrics(rows: Iterable[MetricRow], rule: Rule) -> list[Change]:
    """Every series of the newest run of each recipe (step, model, command without seeds).

    A series of the machine counts by its median over training steps, any other by its tail; one that is no longer
    finite, or that good runs had and this one lacks, has regressed.
    """
    lines: dict[tuple[str, str, str, str], list[_Point]] = {}
    newest: dict[tuple[str, str, str], MetricRow] = {}
    for row in rows:
        where = (_coverage(row), row.model, row.recipe)
        newest[where] = row
        value = math.nan if row.non_finite else row.median if row.machine else row.tail
        point = _Point(row.run, value, row.verdict == "Pass")
        lines.setdefault((*where, row.tag), []).append(point)
    found = []
    for (coverage, model, recipe, tag), points in lines.items():
        last = newest[coverage, model, recipe].run
        if points[-1].run != last:
            change = _lost(points, rule, _blank(coverage, model, tag, last))
        else:
            change = _judge(points, rule, _blank(coverage, model, tag, last))
        found += [change] if change is not None else []
    return found


def of_seconds(rows: Iterable[StepRow], rule: Rule) -> list[Change]:
    """How long the newest run of each recipe took, where it passed."""
    lines: dict[tuple[str, str, str], list[_Point]] = {}
    for row in rows:
        if row.seconds is not None:
            point = _Point(row.run, row.seconds, row.verdict == "Pass")
            lines.setdefault((_coverage(row), row.model, row.recipe), []).append(point)
    return [
        _judge(points, rule, _blank(coverage, model, SECONDS, points[-1].run))
        for (coverage, model, _), points in lines.items()
        if points[-1].good
    ]


def _blank(coverage: str, model: str, tag: str, run: str) -> Change:
    state, worse = State.UNDECIDED, worse_of(tag)
    return Change(coverage=coverage, model=model, tag=tag, state=state, worse=worse, run=run)


def _coverage(row: MetricRow | StepRow) -> str:
    return f"{row.loop} L{row.level} {row.variant}"


def _lost(points: Sequence[_Point], rule: Rule, change: Change) -> Change | None:
    good = [point for point in points if point.good][-rule.last :]
    if len(good) < rule.at_least:
        return None
    values = (*(point.value for point in good), None)
    return msgspec.structs.replace(
        change,
        state=State.REGRESSED,
        values=values,
        before=good[-1].run,
        reason=f"{len(good)} good runs have it, this one does not",
    )


def _judge(points: Sequence[_Point], rule: Rule, change: Change) -> Change:
    now = points[-1].value
    earlier = [point for point in points[:-1] if point.good][-rule.last :]
    known = finite([point.value for point in earlier])
    shown = tuple(
        value if value is not None and math.isfinite(value) else None
        for value in (*(point.value for point in earlier), now)
    )
    change = msgspec.structs.replace(change, values=shown, before=earlier[-1].run if earlier else "")
    if len(known) < rule.at_least:
        reason = f"{len(known)} good runs before it, {rule.at_least} are needed"
        return msgspec.structs.replace(change, reason=reason)
    baseline = spread(known)
    width = band(baseline, rule)
    state, reason = _say(now, baseline, width, change.worse)
    return msgspec.structs.replace(change, baseline=baseline, band=width, state=state, reason=reason)


def _say(now: float | None, baseline: Spread, width: float, worse: Worse) -> tuple[State, str]:
    if now is None or not math.isfinite(now):
        return State.REGRESSED, "not finite"
    if abs(now - baseline.median) <= width:
        return State.STEADY, ""
    reason = f"{now:g}, median {baseline.median:g} of {baseline.runs} good runs, band {width:g}"
    bad = worse is Worse.EITHER or (worse is Worse.HIGHER) == (now > baseline.median)
    return (State.REGRESSED if bad else State.IMPROVED), reason
