"""Whose failure it is: every combination of outcomes with the change and on the commit before it."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from proveout.domain.attribution import Answer
from proveout.domain.evidence import AttemptResult, End, ExitRecord, TriageResult
from proveout.domain.finding import Boundary, Citation, Finding, Severity
from proveout.domain.verdict import Verdict
from proveout.flow.against_answer import answer_of, same_failure


def ran(
    letter: str, cause: str = "KeyError: 'num_layers'", finding: str = "judge.exit.status"
) -> AttemptResult:
    verdict = {"P": Verdict.PASS, "F": Verdict.FAIL, "B": Verdict.BLOCKED}[letter]
    wrong = letter != "P"
    return AttemptResult(
        number=1,
        directory="01",
        verdict=verdict,
        exit=ExitRecord(end=End.EXITED, code=int(wrong)),
        findings=(Finding(id=finding, severity=Severity.ERROR, what="it failed"),) if wrong else (),
        triage=TriageResult(
            boundary=Boundary.PROVIDER,
            verdict=verdict,
            subkind="config",
            cause=Citation(what="", text=cause),
        )
        if wrong
        else None,
    )


CASES = {
    ("F", "P"): Answer.NEW,
    ("FF", "PP"): Answer.NEW,
    ("BB", "PP"): Answer.NEW,
    ("FB", "PP"): Answer.UNDECIDED,
    ("F", "F"): Answer.PRE_EXISTING,
    ("FP", "PP"): Answer.FLAKY,
    ("F", "PF"): Answer.FLAKY,
    ("B", "B"): Answer.ENVIRONMENT,
    ("F", "B"): Answer.UNDECIDED,
    ("B", "F"): Answer.UNDECIDED,
    ("F", "PB"): Answer.UNDECIDED,
    ("F", ""): Answer.UNDECIDED,
}


@pytest.mark.parametrize(("sides", "answer"), CASES.items(), ids=str)
def test_answer(sides: tuple[str, str], answer: Answer) -> None:
    found, why = answer_of([ran(letter) for letter in sides[0]], [ran(letter) for letter in sides[1]])
    assert found is answer
    assert bool(why) is (answer is Answer.UNDECIDED)


def test_new_needs_every_run_of_both_sides() -> None:
    for ours in ("F", "B", "FF", "FB"):
        for length in (1, 2, 3):
            for theirs in combinations_with_replacement("PFB", length):
                found, _ = answer_of([ran(x) for x in ours], [ran(x) for x in theirs])
                if found is Answer.NEW:
                    assert set(theirs) == {"P"} and len(set(ours)) == 1
                if found is Answer.PRE_EXISTING:
                    assert set(theirs) == {"F"}


def test_a_base_that_fails_otherwise_was_not_there_before() -> None:
    for other in (ran("F", cause="ValueError: other"), ran("F", finding="judge.finite.non-finite")):
        found, why = answer_of([ran("F")], [other])
        assert found is Answer.UNDECIDED and "otherwise" in why


def test_numbers_and_paths_do_not_make_a_failure_another_one() -> None:
    one = ran("F", cause="File /run/a/src/x.py line 3: shape 12 at 0x7f00 is 1.5e-3")
    two = ran("F", cause="File /other/tree-b/src/x.py line 30: shape 14 at 0x7fff is 2.5")
    assert same_failure(one, two)


def test_a_base_that_imported_another_tree_shows_nothing() -> None:
    wrong = ran("F", finding="judge.provenance.foreign")
    found, why = answer_of([wrong], [wrong])
    assert found is Answer.UNDECIDED and "imported the base" in why
