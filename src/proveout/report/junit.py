"""JUnit XML: a case for each step; Fail, Blocked, Skipped and earlier attempts are told apart.

A case fails or errs exactly where the exit status of the run is not 0: where no step carries the run's verdict
(it was interrupted, or nothing was requested) a case of its own does. ``flakyFailure`` and ``rerunFailure`` are
the elements that Maven Surefire writes for a case that was tried again.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from xml.etree import ElementTree

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Severity
from proveout.domain.report import Report
from proveout.domain.step import LevelRequest
from proveout.domain.verdict import Verdict

_OUTCOME = {
    Verdict.FAIL: "failure",
    Verdict.BLOCKED: "error",
    Verdict.INCOMPLETE: "error",
    Verdict.SKIPPED: "skipped",
    Verdict.NOT_REQUESTED: "skipped",
}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """The report as one XML document with a suite for each loop."""
    root = ElementTree.Element("testsuites", name="proveout")
    loops = dict.fromkeys([step.coverage.loop for step in report.steps] + [row.loop for row in report.levels])
    for loop in loops:
        steps = [step for step in report.steps if step.coverage.loop == loop]
        run_here = {step.coverage.level for step in steps}
        left = [row for row in report.levels if row.loop == loop and row.level not in run_here]
        cases = [*map(_case, steps), *map(_unrequested, left)]
        if cases:
            _suite(root, loop, report, cases)
    told = any(True for name in ("failure", "error") for _ in root.iter(name))
    if not report.steps or (not told and report.result is not Verdict.PASS):
        case = ElementTree.Element("testcase", classname="proveout", name="the run as a whole", time="0.000")
        _outcome(case, report.result, report.summary, report.summary)
        _suite(root, "run", report, [case])
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", _seconds(sum(float(suite.get("time", "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(
    root: ElementTree.Element, name: str, report: Report, cases: list[ElementTree.Element]
) -> ElementTree.Element:
    suite = ElementTree.SubElement(root, "testsuite", name=f"proveout.{name}")
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", _seconds(sum(float(case.get("time", "0")) for case in cases)))
    if report.run is not None:
        started = datetime.datetime.fromtimestamp(report.run.started, datetime.UTC)
        suite.set("timestamp", started.strftime("%Y-%m-%dT%H:%M:%S"))
    properties = [("model", report.model), ("result", report.result.value)]
    if report.run is not None:
        properties += [("run", report.run.id), ("proveout", report.run.version)]
    _properties(suite, properties + [("limitation", text) for text in report.limitations])
    suite.extend(cases)
    return suite


def _case(step: StepResult) -> ElementTree.Element:
    covered = step.coverage
    case = ElementTree.Element(
        "testcase",
        classname=_xml(f"proveout.{covered.loop}.level{covered.level}"),
        name=_xml(covered.variant),
        time=_seconds(sum(max(0.0, a.exit.finished - a.exit.started) for a in step.attempts)),
    )
    _properties(case, [("attempts", str(len(step.attempts))), ("verdict", step.verdict.value)])
    last = step.attempts[-1] if step.attempts else None
    _outcome(case, step.verdict, _reason(step, last), "\n".join(_lines(last)) if last else step.reason)
    again = "flakyFailure" if step.verdict is Verdict.PASS else "rerunFailure"
    for attempt in step.attempts[:-1]:
        told = ElementTree.SubElement(
            case,
            again,
            message=_xml(f"attempt {attempt.number}: {attempt.verdict.value}, {attempt.exit}"),
            type=attempt.verdict.value,
        )
        told.text = _xml("\n".join(_lines(attempt)))
    if last is not None:
        out = ElementTree.SubElement(case, "system-out")
        out.text = _xml("\n".join(_record(step)))
    return case


def _unrequested(row: LevelRequest) -> ElementTree.Element:
    name = f"proveout.{row.loop}.level{row.level}"
    case = ElementTree.Element("testcase", classname=_xml(name), name=_xml(row.variant), time="0.000")
    reason = f"no step was planned ({row.reason})" if row.requested else row.reason
    _outcome(case, Verdict.SKIPPED if row.requested else Verdict.NOT_REQUESTED, reason, "")
    return case


def _outcome(case: ElementTree.Element, verdict: Verdict, message: str, text: str) -> None:
    if verdict not in _OUTCOME:
        return
    told = ElementTree.SubElement(case, _OUTCOME[verdict], message=_xml(f"{verdict.value}: {message}"))
    if _OUTCOME[verdict] != "skipped":
        told.set("type", verdict.value)
        told.text = _xml(text) or None


def _reason(step: StepResult, last: AttemptResult | None) -> str:
    if step.reason or last is None:
        return step.reason
    if last.triage is not None and last.triage.cause is not None:
        return f"{last.triage.boundary.value}: {last.triage.cause.what}"
    errors = [finding.what for finding in last.findings if finding.severity is Severity.ERROR]
    return errors[0] if errors else str(last.exit)


def _lines(attempt: AttemptResult) -> Iterable[str]:
    yield f"attempt {attempt.number}: {attempt.exit}"
    if attempt.triage is not None and attempt.triage.cause is not None:
        yield f"cause: {attempt.triage.cause.text.strip()} [{attempt.triage.cause.where}]"
    for finding in attempt.findings:
        place = f" [{finding.where}]" if str(finding.where) else ""
        yield f"{finding.severity.value}: {finding.id}: {finding.what}{place}"
        if finding.remedy:
            yield f"  {finding.remedy}"


def _record(step: StepResult) -> Iterable[str]:
    for attempt in step.attempts:
        yield f"attempt {attempt.number} ({attempt.directory}): {attempt.verdict.value}, {attempt.exit}"
        for row in attempt.checks:
            yield f"  {'holds' if row.passed else 'FAILS'}: {row.check} (value {row.value})"


def _properties(parent: ElementTree.Element, named: Iterable[tuple[str, str]]) -> None:
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in named:
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("", text)
