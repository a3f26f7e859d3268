"""A verdict follows from evidence, and nothing that could not be judged counts as shown."""

import pytest

from proveout.domain.evidence import CriterionResult, End
from proveout.domain.finding import Finding, Severity
from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge
from proveout.judge.registry import ALWAYS


def ids(judgement):
    return [finding.id for finding in judgement.findings]


def test_a_healthy_attempt_passes_and_every_criterion_cites_what_held(attempt):
    judgement = judge(attempt())
    assert judgement.verdict is Verdict.PASS
    assert [result.kind for result in judgement.results] == list(ALWAYS)
    assert all(result.held for result in judgement.results)


@pytest.mark.parametrize(
    ("end", "code", "verdict"),
    [
        (End.EXITED, 1, Verdict.FAIL),
        (End.EXITED, None, Verdict.FAIL),
        (End.SIGNALLED, None, Verdict.FAIL),
        (End.TIMED_OUT, None, Verdict.FAIL),
        (End.INTERRUPTED, 0, Verdict.INCOMPLETE),
        (End.LOST, None, Verdict.INCOMPLETE),
        (End.NOT_STARTED, None, Verdict.BLOCKED),
    ],
)
def test_nothing_but_exit_status_0_passes(attempt, end, code, verdict):
    assert judge(attempt(end=end, code=code)).verdict is verdict


def test_an_interrupted_attempt_is_incomplete_though_a_criterion_fails(attempt):
    judgement = judge(attempt({"train/loss": {1: float("nan")}}, end=End.INTERRUPTED))
    assert judgement.verdict is Verdict.INCOMPLETE
    assert "judge.finite.non-finite" in ids(judgement)


def test_an_unknown_criterion_is_an_error_that_names_the_nearest(attempt):
    judgement = judge(attempt(criteria=(Criterion(kind="artefacts"),)))
    assert judgement.verdict is Verdict.FAIL
    assert ids(judgement) == ["judge.artefacts.unknown"]
    assert "'artifacts'" in judgement.findings[0].what


@pytest.mark.parametrize(
    "criterion",
    [
        Criterion(kind="checks", params={}),
        Criterion(kind="checks", params={"expressions": []}),
        Criterion(kind="checks", params={"expressions": ["1 < 2"], "strict": True}),
        Criterion(kind="completion", params={"planned": 3}),
        Criterion(kind="completion", params={"planned_steps": "three"}),
        Criterion(kind="exit", params={"code": 1}),
        Criterion(kind="false_pass", params={"fatal": ["no-such-rule"]}),
    ],
)
def test_wrong_parameters_are_an_error(attempt, criterion):
    judgement = judge(attempt(criteria=(criterion,)))
    assert judgement.verdict is Verdict.FAIL
    assert ids(judgement) == [f"judge.{criterion.kind}.params"]


def test_a_criterion_that_breaks_inside_never_passes(attempt, monkeypatch):
    def broken(evidence, params):
        raise ZeroDivisionError("inside")

    monkeypatch.setitem(judge.__globals__["CRITERIA"], "finite", broken)
    judgement = judge(attempt())
    assert judgement.verdict is Verdict.FAIL
    assert ids(judgement) == ["judge.finite.crashed"]


def test_what_reading_the_evidence_found_counts(attempt):
    def found(severity):
        return Finding(id="capture.tensorboard.corrupt", severity=severity, what="a corrupt record")

    assert judge(attempt(findings=(found(Severity.ERROR),))).verdict is Verdict.FAIL
    assert judge(attempt(findings=(found(Severity.WARNING),))).verdict is Verdict.PASS


def test_a_finding_may_block(attempt):
    finding = Finding(id="x", severity=Severity.ERROR, what="no GPU", verdict=Verdict.BLOCKED)
    assert judge(attempt(findings=(finding,))).verdict is Verdict.BLOCKED


def test_an_error_that_claims_to_be_a_pass_fails(attempt):
    finding = Finding(id="x", severity=Severity.ERROR, what="odd", verdict=Verdict.PASS)
    assert judge(attempt(findings=(finding,))).verdict is Verdict.FAIL


def test_a_criterion_that_misses_the_exit_status_does_not_make_a_pass(attempt, monkeypatch):
    def blind(evidence, params):
        return CriterionResult(kind="exit")

    monkeypatch.setitem(judge.__globals__["CRITERIA"], "exit", blind)
    assert judge(attempt(code=1)).verdict is Verdict.FAIL
