"""JUnit XML: valid, counted right, and red exactly where the run did not pass."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.samples import BLOCKED, FAIL, INCOMPLETE, NEMO, PASS, SAMPLES, SMOKE, attempt, report

from proveout.domain.evidence import StepResult
from proveout.domain.report import Report
from proveout.domain.step import LevelRequest
from proveout.domain.verdict import Verdict
from proveout.report import render

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def parsed(model: Report) -> ElementTree.Element:
    text = render(model, "junit")
    SCHEMA.validate(text)
    return ElementTree.fromstring(text)


def one(model: Report, level: str = "level0") -> ElementTree.Element:
    (case,) = [c for c in parsed(model).iter("testcase") if c.get("classname").endswith(f"bench.{level}")]
    return case


def step(verdict: Verdict, *before: Verdict, reason: str = "") -> Report:
    tries = [attempt(each, number) for number, each in enumerate((*before, verdict), 1)]
    known = () if reason else tuple(tries)
    result = StepResult(id="s", coverage=SMOKE, verdict=verdict, reason=reason, attempts=known)
    return report(verdict, steps=(result,))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample_is_valid_and_counts_its_cases(name: str) -> None:
    root = parsed(SAMPLES[name])
    for element in (root, *root.iter("testsuite")):
        assert int(element.get("tests")) == len(list(element.iter("testcase")))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(count)) == len(list(element.iter(tag)))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_it_is_red_exactly_where_the_run_did_not_pass(name: str) -> None:
    root = parsed(SAMPLES[name])
    red = int(root.get("failures")) + int(root.get("errors"))
    assert (red == 0) is (SAMPLES[name].result is Verdict.PASS)


@pytest.mark.parametrize(
    ("model", "tag", "kind"),
    [(FAIL, "failure", "Fail"), (step(Verdict.INCOMPLETE), "error", "Incomplete")],
)
def test_what_did_not_pass_says_so_under_its_own_element(model: Report, tag: str, kind: str) -> None:
    assert one(model).find(tag).get("type") == kind


def test_blocked_is_an_error_and_no_failure() -> None:
    root = parsed(BLOCKED)
    assert root.get("failures") == "0"
    (error,) = root.iter("error")
    assert error.get("type") == "Blocked"
    assert "disk full" in error.get("message")


def test_a_failing_step_is_counted_once() -> None:
    assert parsed(FAIL).get("failures") == "1"


def test_skipped_and_not_requested_are_skipped_with_their_reason() -> None:
    skipped = StepResult(id="s", coverage=SMOKE, verdict=Verdict.SKIPPED, reason="it needs x")
    root = parsed(report(Verdict.BLOCKED, steps=(skipped,)))
    said = {
        case.get("classname"): case.find("skipped").get("message")
        for case in root.iter("testcase")
        if case.find("skipped") is not None
    }
    assert said == {
        "proveout.bench.level0": "Skipped: it needs x",
        "proveout.verl.level0": "Not requested: no checkout",
    }


def test_a_step_that_passed_when_tried_again_shows_its_earlier_attempt() -> None:
    case = one(step(Verdict.PASS, Verdict.BLOCKED))
    assert case.find("failure") is None
    assert case.find("error") is None
    assert [told.get("type") for told in case.iter("flakyFailure")] == ["Blocked"]
    assert one(step(Verdict.FAIL, Verdict.FAIL)).find("rerunFailure") is not None


def test_a_run_without_steps_has_a_case_with_the_runs_verdict() -> None:
    root = parsed(report(Verdict.BLOCKED, steps=(), levels=()))
    (case,) = root.iter("testcase")
    assert case.find("error").get("type") == "Blocked"


def test_a_passing_run_has_a_passing_case() -> None:
    assert next(iter(one(PASS))).tag == "properties"
    assert one(PASS).find("skipped") is None


def test_a_run_stopped_after_passing_steps_is_red() -> None:
    passed = StepResult(id="s", coverage=SMOKE, verdict=Verdict.PASS, attempts=(attempt(Verdict.PASS),))
    assert parsed(report(Verdict.INCOMPLETE, steps=(passed,))).get("errors") == "1"


@settings(max_examples=40)
@given(
    text=st.text(),
    verdict=st.sampled_from(list(Verdict)),
    result=st.sampled_from([Verdict.PASS, Verdict.FAIL, Verdict.BLOCKED, Verdict.INCOMPLETE]),
)
def test_no_text_makes_it_invalid(text: str, verdict: Verdict, result: Verdict) -> None:
    made = StepResult(id=text, coverage=NEMO, verdict=verdict, reason=text)
    level = LevelRequest(loop="verl", level=1, requested=False, reason=text, variant="v")
    parsed(report(result, summary=text, model=text, steps=(made,), levels=(level,)))


def test_incomplete_run_shows_both_attempts() -> None:
    assert one(INCOMPLETE).find("flakyFailure").get("type") == "Incomplete"
