"""Tests: what a test runner wrote as JUnit XML shows that tests ran and that none failed.

An exit status of 0 does not: a run whose tests were all deselected or skipped is no pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Where
from proveout.judge import say

_NAMED = 5


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``junit``: the XML file, relative to the attempt directory; ``at_least``: so many tests must have passed."""

    junit: str
    at_least: int = 1


def tests(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """At least one test passed and none failed, by the runner's own record of this attempt."""
    wanted = msgspec.convert(dict(params), Params)
    path = Path(evidence.attempt_dir) / wanted.junit
    where = Where(file=wanted.junit)
    try:
        outcomes = read_junit(path)
    except (OSError, expat.ExpatError) as error:
        what = f"the record of the tests cannot be read, so nothing shows that any ran: {error}"
        unread = say.error("tests.unread", what, where=where, remedy="see the end of the log")
        return CriterionResult(kind="tests", findings=(unread,))
    failed = [name for name, outcome in outcomes if outcome in ("failure", "error")]
    passed = sum(outcome == "passed" for _, outcome in outcomes)
    skipped = sum(outcome == "skipped" for _, outcome in outcomes)
    counts = f"{passed} passed, {len(failed)} failed, {skipped} skipped"
    cite = Citation(what="tests by the runner's record", where=where, text=counts)
    findings = []
    if failed:
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        findings.append(
            say.error(
                "tests.failed",
                f"tests failed: {', '.join(failed[:_NAMED])}{more}",
                where=where,
                evidence=(cite,),
            )
        )
    if passed < wanted.at_least:
        findings.append(
            say.error(
                "tests.too-few",
                f"{passed} tests passed, {wanted.at_least} at least were to: {counts}",
                where=where,
                evidence=(cite,),
                remedy="tests that are deselected or skipped show nothing; see which marks select them here",
            )
        )
    return CriterionResult(kind="tests", findings=tuple(findings), held=() if findings else (cite,))


def read_junit(path: Path) -> list[tuple[str, str]]:
    """Test name and outcome (passed, failure, error, skipped) of each test case, in the file's order.

    Entities are not resolved. Raises OSError, and expat.ExpatError for what is no XML.
    """
    outcomes: list[tuple[str, str]] = []
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            name = "::".join(part for part in (attributes.get("classname"), attributes.get("name")) if part)
            outcomes.append((name, "passed"))
        elif tag in ("failure", "error", "skipped") and outcomes:
            outcomes[-1] = (outcomes[-1][0], tag)

    def refuse(*declaration: object) -> None:
        raise expat.ExpatError("an entity is declared")

    parser.StartElementHandler = begin
    parser.EntityDeclHandler = refuse
    with path.open("rb") as file:
        parser.ParseFile(file)
    return outcomes
