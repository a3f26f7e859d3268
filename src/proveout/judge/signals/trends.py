"""Whether the outcome moves the right way over the run, with a statement of confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.domain.metrics import Series
from proveout.judge import say
from proveout.judge.signals.view import Said, View
from proveout.judge.stats import Trend, blocks, trend

Direction = Literal["up", "down", "not-down", "not-up"]
_BETTER: dict[str, Direction] = {
    "reward": "up",
    "validation": "up",
    "validation_loss": "down",
    "loss": "down",
}


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A direction, or in its place an end level that is good enough (mean of the last fifth)."""

    direction: Direction
    at_least: float | None = None
    at_most: float | None = None


def asked(view: View, wishes: Mapping[str, Wanted]) -> Said:
    """Every series or role that is asked for moves as asked."""
    findings: list[Finding] = []
    held: list[Citation] = []
    for name, wanted in wishes.items():
        chosen = _series(view, name)
        if not chosen:
            findings.append(
                say.error(
                    "learning_signal.trend-missing",
                    f"a trend of {name} was asked for and no such series is there",
                    where=Where(metric=name),
                )
            )
        for tag, series in chosen.items():
            said = _judged(view, tag, series, wanted)
            findings += said.findings
            held += said.held
    return Said(tuple(findings), tuple(held))


def outcome(view: View) -> Said:
    """Reward or validation rises significantly (without both: the loss falls); the default."""
    names = ["reward", "validation"] if view.role("reward", "validation") else ["validation_loss", "loss"]
    said = [
        _judged(view, tag, series, Wanted(direction=_BETTER[name]))
        for name in names
        for tag, series in view.role(name).items()
    ]
    passing = tuple(cite for one in said for cite in one.held)
    others = (finding for one in said for finding in one.findings)
    if passing:
        return Said(tuple(_only_warn(finding) for finding in others), passing)
    if not said:
        missing = say.error(
            "learning_signal.no-outcome",
            "no reward, validation or loss series is there to show a trend",
            where=Where(file=view.evidence.log),
        )
        return Said((missing,))
    return Said(tuple(others))


def _only_warn(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, severity=Severity.WARNING)


def improved(view: View, role: str) -> bool:
    """Whether some series of ``role`` moves the better way significantly."""
    wanted = Wanted(direction=_BETTER[role])
    return any(not _judged(view, tag, series, wanted).findings for tag, series in view.role(role).items())


def _series(view: View, name: str) -> dict[str, Series]:
    if name in _BETTER:
        return view.role(name)
    series = view.evidence.metrics.get(name)
    return {name: series} if series is not None and len(series) else {}


def _judged(view: View, tag: str, series: Series, wanted: Wanted) -> Said:
    finite = series if not series.non_finite_steps() else _finite(series)
    least = int(view.threshold("trend_values"))
    if len(finite) < least:
        short = say.error(
            "learning_signal.too-short",
            f"{tag} has {len(finite)} values; a trend is said of no fewer than {least}",
            evidence=tuple(say.point(tag, finite, s, "its last value") for s in finite.steps[-1:]),
            where=Where(metric=tag),
            remedy="run more steps, or ask for no trend at this level",
        )
        return Said((short,))
    steps, values = blocks(
        [float(s) for s in finite.steps], finite.values, int(view.threshold("trend_blocks"))
    )
    confidence = view.threshold("trend_confidence")
    found = trend(steps, values, confidence)
    what = f"{tag}: {_statement(finite, found, confidence)}"
    cite = say.point(tag, finite, finite.steps[-1], what)
    enough = _enough(finite, wanted)
    if _moves(found, wanted.direction, confidence) or enough:
        return Said(held=(cite,))
    return Said(
        (
            say.error(
                "learning_signal.trend",
                f"{what}; asked for: {wanted.direction}",
                evidence=(cite,),
                boundary=Boundary.TRAINER,
                remedy="a flat outcome is no learning signal: run more steps, or look for what is frozen",
            ),
        )
    )


def _moves(found: Trend, direction: Direction, confidence: float) -> bool:
    level = 1 - confidence
    return {
        "up": found.p_up < level and found.slope > 0,
        "down": found.p_down < level and found.slope < 0,
        "not-down": found.p_down >= level,
        "not-up": found.p_up >= level,
    }[direction]


def _enough(series: Series, wanted: Wanted) -> bool:
    tail = series.values[-max(1, len(series) // 5) :]
    level = sum(tail) / len(tail)
    above = wanted.at_least is not None and level >= wanted.at_least
    below = wanted.at_most is not None and level <= wanted.at_most
    return above or below


def _statement(series: Series, found: Trend, confidence: float) -> str:
    rises = found.p_up < 1 - confidence
    falls = found.p_down < 1 - confidence
    word = "rises" if rises else "falls" if falls else "shows no trend"
    p = min(found.p_up, found.p_down)
    fifth = max(1, len(series) // 5)
    start, end = sum(series.values[:fifth]) / fifth, sum(series.values[-fifth:]) / fifth
    return (
        f"{word} from {start:.4g} to {end:.4g} over {len(series)} steps "
        f"(Theil-Sen {found.slope:+.3g} a step, "
        f"{confidence:.0%} interval {found.low:+.3g} to {found.high:+.3g}; Mann-Kendall p = {p:.2g})"
    )


def _finite(series: Series) -> Series:
    bad = set(series.non_finite_steps())
    return Series.of({step: value for step, value in series if step not in bad}, series.source)
