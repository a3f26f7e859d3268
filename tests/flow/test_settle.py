"""Blocked against Fail: what triage says, and whether the provider was constructed when the run stopped."""

from __future__ import annotations

import pytest

from proveout.domain.evidence import End, ExitRecord, Judgement, TriageResult
from proveout.domain.finding import Boundary, Citation
from proveout.domain.verdict import Verdict
from proveout.flow.settle import explained, settle
from proveout.triage.construction import Construction, Reached

FAILED = Judgement(verdict=Verdict.FAIL, results=())
ENDED = ExitRecord(end=End.EXITED, code=1)


def triage(boundary: Boundary, confidence: str = "medium") -> TriageResult:
    blocked = boundary is Boundary.ENVIRONMENT
    return TriageResult(
        boundary=boundary,
        verdict=Verdict.BLOCKED if blocked else Verdict.FAIL,
        confidence=confidence,
        cause=Citation(what="it", text="it"),
    )


CASES = [
    (Boundary.ENVIRONMENT, "medium", Reached.BEFORE, Verdict.BLOCKED),
    (Boundary.ENVIRONMENT, "medium", Reached.BEGUN, Verdict.BLOCKED),
    (Boundary.ENVIRONMENT, "medium", Reached.UNKNOWN, Verdict.BLOCKED),
    (Boundary.ENVIRONMENT, "medium", Reached.BUILT, Verdict.FAIL),
    (Boundary.ENVIRONMENT, "high", Reached.BUILT, Verdict.BLOCKED),
    (Boundary.GENERATION, "high", Reached.BEFORE, Verdict.BLOCKED),
    (Boundary.GENERATION, "high", Reached.BEGUN, Verdict.FAIL),
    (Boundary.GENERATION, "high", Reached.BUILT, Verdict.FAIL),
    (Boundary.PROVIDER, "high", Reached.BEFORE, Verdict.FAIL),
    (Boundary.TRAINER, "low", Reached.BEFORE, Verdict.FAIL),
    (Boundary.UNKNOWN, "low", Reached.BEFORE, Verdict.FAIL),
]


@pytest.mark.parametrize(("boundary", "confidence", "reached", "verdict"), CASES)
def test_a_failed_attempt(boundary: Boundary, confidence: str, reached: Reached, verdict: Verdict) -> None:
    built = Construction(reached=reached)
    assert settle(ENDED, FAILED, triage(boundary, confidence), built) is verdict


@pytest.mark.parametrize("reached", list(Reached))
def test_neither_makes_a_pass_nor_unmakes_one(reached: Reached) -> None:
    built = Construction(reached=reached)
    for boundary in Boundary:
        assert settle(ENDED, FAILED, triage(boundary), built) is not Verdict.PASS
    passed = Judgement(verdict=Verdict.PASS, results=())
    assert settle(ExitRecord(end=End.EXITED, code=0), passed, None, None) is Verdict.PASS
    for end in (End.LOST, End.INTERRUPTED):
        stopped = ExitRecord(end=end)
        assert settle(stopped, FAILED, triage(Boundary.ENVIRONMENT), built) is Verdict.INCOMPLETE


def test_the_decision_is_told_with_its_line() -> None:
    shown = Citation(what="stage ray_start", text="Started a local Ray instance")
    built = Construction(reached=Reached.BEFORE, stage="ray_start", shown=shown)
    (found,) = explained(built, Verdict.BLOCKED, triage(Boundary.ENVIRONMENT))
    assert found.id == "flow.construction.before" and found.evidence == (shown,) and not found.decides
    assert "before the provider was constructed" in found.what and "no evidence against" in found.what
    late = Construction(reached=Reached.BUILT)
    (found,) = explained(late, Verdict.FAIL, triage(Boundary.ENVIRONMENT))
    assert "not plainly the environment's, so it is a Fail" in found.what
    assert explained(built, Verdict.PASS, None) == ()
