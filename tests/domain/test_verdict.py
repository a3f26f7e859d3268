"""How verdicts add up: no combination that holds anything but Pass and Skipped is a Pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proveout.domain.finding import Finding, Severity
from proveout.domain.verdict import EXIT_STATUS, Verdict, overall, worst

STEP_VERDICTS = st.sampled_from([v for v in Verdict if v is not Verdict.NOT_REQUESTED])
LEVELS = st.lists(st.lists(STEP_VERDICTS, max_size=4), max_size=4)


@given(LEVELS)
def test_pass_needs_a_passing_step_in_every_level_and_nothing_worse(levels: list[list[Verdict]]) -> None:
    every_level_proved = bool(levels) and all(Verdict.PASS in level for level in levels)
    nothing_worse = all(v in (Verdict.PASS, Verdict.SKIPPED) for level in levels for v in level)
    assert (overall(levels) is Verdict.PASS) == (every_level_proved and nothing_worse)


@given(LEVELS)
def test_a_fail_anywhere_is_a_fail(levels: list[list[Verdict]]) -> None:
    assert (overall(levels) is Verdict.FAIL) == any(Verdict.FAIL in level for level in levels)


@given(LEVELS)
def test_only_pass_exits_0(levels: list[list[Verdict]]) -> None:
    assert (EXIT_STATUS[overall(levels)] == 0) == (overall(levels) is Verdict.PASS)


def test_a_run_that_requested_nothing_is_blocked() -> None:
    assert overall([]) is Verdict.BLOCKED


@given(st.lists(STEP_VERDICTS, min_size=1))
def test_order_does_not_matter(verdicts: list[Verdict]) -> None:
    assert worst(verdicts) is worst(reversed(verdicts))


def test_exit_statuses_are_the_documented_ones() -> None:
    assert [EXIT_STATUS[v] for v in (Verdict.PASS, Verdict.FAIL, Verdict.BLOCKED, Verdict.INCOMPLETE)] == [
        0,
        1,
        3,
        4,
    ]


def test_only_an_error_decides_and_decides_fail_unless_it_says_otherwise() -> None:
    def decides(severity: Severity, verdict: Verdict | None = None) -> Verdict | None:
        return Finding(id="x", severity=severity, what="x", verdict=verdict).decides

    assert decides(Severity.ERROR) is Verdict.FAIL
    assert decides(Severity.ERROR, Verdict.BLOCKED) is Verdict.BLOCKED
    assert decides(Severity.WARNING, Verdict.FAIL) is None
    assert decides(Severity.NOTICE) is None
