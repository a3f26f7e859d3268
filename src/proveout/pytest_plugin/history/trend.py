"""Trends of tracked metrics, and regressions by robust statistics."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from statistics import median

import msgspec

from proveout.pytest_plugin.history.files import Session, Test

MAD_TO_SIGMA = 1.4826
_GOOD_OUTCOMES = {"", "passed", "xfailed"}
_BAD_OUTCOMES = {"failed", "error", "crashed", "unfinished", "collection error"}
_WORD = re.compile(r"[A-Za-z]+")


class Worse(StrEnum):
    """Which way a metric gets worse."""

    HIGHER = "higher"
    LOWER = "lower"
    EITHER = "either"


class State(StrEnum):
    """What is said of a series. UNDECIDED: too few earlier sessions to say."""

    STEADY = "steady"
    IMPROVED = "improved"
    REGRESSED = "regressed"
    UNDECIDED = "undecided"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When a value has moved: further from the baseline's median than ``sigmas`` robust standard deviations
    and than ``min_change`` of the median's size.

    The baseline is the last ``last`` sessions before the newest in which the test was good and has the metric;
    with fewer than ``at_least`` nothing is decided. The robust standard deviation is 1.4826 times the median
    absolute deviation, the factor that makes it agree with the standard deviation of normal values.
    """

    last: int = 20
    at_least: int = 5
    sigmas: float = 4.0
    min_change: float = 0.1


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one test over time. ``values`` oldest first, the newest last; None where it is not finite."""

    test: str
    metric: str
    state: State
    values: tuple[float | None, ...]
    worse: Worse
    median: float | None = None
    band: float | None = None
    reason: str = ""


def trends(
    sessions: Sequence[Session], rule: Rule, overrides: Mapping[str, Worse] | None = None
) -> list[Trend]:
    """A trend for each metric, and for each outcome, of the tests in the newest session.

    A metric that its test has always had and lacks now has regressed, as has one that is no longer finite, and
    a test that was good and is not.
    """
    if not sessions:
        return []
    *earlier, newest = sessions
    found = []
    for name, test in newest.tests.items():
        past = [session.tests[name] for session in earlier if name in session.tests]
        found.append(_outcome_trend(name, test, past, rule))
        good = [each for each in past if each.outcome in _GOOD_OUTCOMES]
        metrics = {metric: None for each in (*good, test) for metric in each.metrics}
        found += [
            _metric_trend(name, metric, test, good, rule=rule, overrides=overrides or {})
            for metric in metrics
        ]
    return [trend for trend in found if trend is not None]


def _outcome_trend(name: str, test: Test, past: Iterable[Test], rule: Rule) -> Trend | None:
    known = [each.outcome for each in past if each.outcome][-rule.last :]
    if not test.outcome or test.outcome == "skipped":
        return None
    bad = test.outcome in _BAD_OUTCOMES
    was_good = bool(known) and known[-1] in _GOOD_OUTCOMES
    state = State.STEADY if known else State.UNDECIDED
    if bad and was_good:
        state = State.REGRESSED
    elif not bad and known and known[-1] in _BAD_OUTCOMES:
        state = State.IMPROVED
    values = tuple(float(outcome in _GOOD_OUTCOMES) for outcome in (*known, test.outcome))
    reason = f"{known[-1]} before, {test.outcome} now" if state in (State.REGRESSED, State.IMPROVED) else ""
    return Trend(test=name, metric="(outcome)", state=state, values=values, worse=Worse.LOWER, reason=reason)


def _metric_trend(
    name: str,
    metric: str,
    test: Test,
    past: Sequence[Test],
    *,
    rule: Rule,
    overrides: Mapping[str, Worse],
) -> Trend | None:
    worse = overrides.get(metric) or worse_of(metric)
    baseline = [each.metrics[metric] for each in past if metric in each.metrics][-rule.last :]
    finite = [value for value in baseline if math.isfinite(value)]
    value = test.metrics.get(metric)
    if value is None:
        lost = len(past) >= rule.at_least and all(metric in each.metrics for each in past[-rule.at_least :])
        if not lost or test.outcome == "skipped":
            return None
    state, centre, band, reason = State.UNDECIDED, None, None, ""
    if len(finite) < rule.at_least:
        reason = f"{len(finite)} earlier values, {rule.at_least} are needed"
    else:
        centre = median(finite)
        deviation = median(abs(each - centre) for each in finite)
        band = max(rule.sigmas * MAD_TO_SIGMA * deviation, rule.min_change * abs(centre))
        state, reason = _judge(value, centre, band, worse)
    shown = (*baseline, value) if value is not None else (*baseline, math.nan)
    return Trend(
        test=name,
        metric=metric,
        state=state,
        values=tuple(each if math.isfinite(each) else None for each in shown),
        worse=worse,
        median=centre,
        band=band,
        reason=reason,
    )


def _judge(value: float | None, centre: float, band: float, worse: Worse) -> tuple[State, str]:
    if value is None:
        return State.REGRESSED, "no longer tracked"
    if not math.isfinite(value):
        return State.REGRESSED, f"{value} now"
    if abs(value - centre) <= band:
        return State.STEADY, ""
    higher = value > centre
    reason = f"{value:g}, median {centre:g}, band {band:g}"
    bad = worse is Worse.EITHER or (worse is Worse.HIGHER) == higher
    return (State.REGRESSED if bad else State.IMPROVED), reason


def worse_of(metric: str) -> Worse:
    """Which way a metric gets worse, by the words of its name; EITHER where they do not say."""
    for word in reversed(_WORD.findall(metric.lower())):
        for worse, words in _directions():
            if word in words:
                return worse
    return Worse.EITHER


@cache
def _directions() -> tuple[tuple[Worse, frozenset[str]], ...]:
    table = tomllib.loads(Path(__file__).with_name("directions.toml").read_text(encoding="utf-8"))
    return (
        (Worse.HIGHER, frozenset(table["higher_is_worse"])),
        (Worse.LOWER, frozenset(table["lower_is_worse"])),
    )
