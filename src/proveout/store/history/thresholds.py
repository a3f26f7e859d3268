"""Thresholds that the spread of good runs suggests. They are shown, and never put anywhere by proveout."""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterable, Sequence

import msgspec

from proveout.store.history.records import MetricRow
from proveout.store.history.robust import Rule, Spread, Worse, band, finite, spread, worse_of


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """One check for one tag, or why there is none.

    ``spread`` is that of the runs' value that the check looks at; ``check`` is a metric expression, '' where
    ``reason`` says why none is suggested. Every run that it comes from holds it.
    """

    coverage: str
    model: str
    tag: str
    statistic: str
    runs: int
    spread: Spread | None = None
    check: str = ""
    reason: str = ""


def suggest(rows: Iterable[MetricRow], rule: Rule) -> list[Suggestion]:
    """Checks for the tags of each recipe (step, model, command without seeds) from its last ``rule.last`` good runs.

    What gets worse upwards is bounded by its highest value over training steps, what gets worse downwards by its
    median; what can do both by both ends. The bound lies a band (``rule``) beyond the median of the runs, and
    a margin beyond every good run.
    """
    lines: dict[tuple[str, str, str, str], list[MetricRow]] = {}
    for row in rows:
        if row.verdict == "Pass":
            key = (f"{row.loop} L{row.level} {row.variant}", row.model, row.recipe, row.tag)
            lines.setdefault(key, []).append(row)
    found = []
    for (coverage, model, _, tag), points in lines.items():
        for statistic, sign in _STATISTICS[worse_of(tag)]:
            blank = Suggestion(coverage=coverage, model=model, tag=tag, statistic=statistic, runs=0)
            found.append(_one(blank, sign, points[-rule.last :], rule))
    return found


_STATISTICS = {
    Worse.HIGHER: (("max", "<"),),
    Worse.LOWER: (("median", ">"),),
    Worse.EITHER: (("max", "<"), ("min", ">")),
}


def _one(blank: Suggestion, sign: str, rows: Sequence[MetricRow], rule: Rule) -> Suggestion:
    change = msgspec.structs.replace
    blank = change(blank, runs=len(rows))
    if len(rows) < rule.at_least:
        return change(blank, reason=f"{len(rows)} good runs, {rule.at_least} are needed")
    if any(row.non_finite for row in rows):
        return change(blank, reason="a good run holds values that are not finite")
    field = {"max": "high", "min": "low", "median": "median"}[blank.statistic]
    known = finite([getattr(row, field) for row in rows])
    if len(known) < rule.at_least:
        return change(blank, reason=f"{len(known)} good runs with values, {rule.at_least} are needed")
    seen = spread(known)
    width = band(seen, rule)
    if not width:
        return change(blank, spread=seen, reason="all good runs show the same value, so no width is known")
    upward = sign == "<"
    end = seen.high if upward else seen.low
    margin = max(seen.sigma, width / 10, abs(end) / 100)
    bound = max(seen.median + width, end + margin) if upward else min(seen.median - width, end - margin)
    check = f"{blank.statistic}(data[{json.dumps(blank.tag)}]) {sign} {_rounded(bound, up=upward)}"
    return change(blank, spread=seen, check=check)


def _rounded(bound: float, *, up: bool) -> str:
    """Three digits, rounded away from what good runs show."""
    context = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(bound)):.6g}"
