"""Verdicts, how they add up, and the exit status that each one gives."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What is said of a deliverable, a step or a run. INCOMPLETE is said only of what did not finish."""

    PASS = "Pass"  # noqa: S105 - a verdict, not a password
    FAIL = "Fail"
    BLOCKED = "Blocked"
    SKIPPED = "Skipped"
    NOT_REQUESTED = "Not requested"
    INCOMPLETE = "Incomplete"


EXIT_USAGE = 2
EXIT_STATUS = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.BLOCKED: 3,
    Verdict.SKIPPED: 3,
    Verdict.NOT_REQUESTED: 3,
    Verdict.INCOMPLETE: 4,
}
_WORST_FIRST = (Verdict.FAIL, Verdict.INCOMPLETE, Verdict.BLOCKED, Verdict.PASS)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides among several: Fail, then Incomplete, Blocked, Pass; else Skipped."""
    seen = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in seen), Verdict.SKIPPED)


def overall(levels: Iterable[Iterable[Verdict]]) -> Verdict:
    """The verdict of a run from the step verdicts of each requested level.

    Pass needs at least one passing step in every level and nothing but Pass and Skipped; a level of which
    every step was skipped proves nothing, so the run is Blocked. A run that requested nothing is Blocked.
    """
    decided = [worst(level) for level in levels]
    if not decided:
        return Verdict.BLOCKED
    return worst(Verdict.BLOCKED if verdict is Verdict.SKIPPED else verdict for verdict in decided)
