"""GitHub annotations as workflow commands, what decides first: GitHub shows ten of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Finding, Severity
from proveout.domain.report import Report
from proveout.domain.verdict import Verdict

_RANK = {"error": 0, "warning": 1, "notice": 2}
_OF_SEVERITY = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
_OF_VERDICT = {Verdict.PASS: "notice", Verdict.SKIPPED: "notice", Verdict.NOT_REQUESTED: "notice"}

_LINE_END = re.compile(r"[\n\u2028\u2029]")


def render(report: Report) -> str:
    """One command a line: the result, then causes and findings by severity."""
    kind = _OF_VERDICT.get(report.result, "error")
    result = _command(kind, f"proveout: {report.result.value}", report.summary)
    rest = sorted(dict.fromkeys(_rest(report)), key=lambda told: _RANK[told[0]])
    return "\n".join([result, *(_command(*told) for told in rest)]) + "\n"


def _rest(report: Report) -> Iterator[tuple[str, str, str]]:
    for step in report.steps:
        kind = _OF_VERDICT.get(step.verdict, "error")
        if step.verdict is not Verdict.PASS:
            yield kind, f"{step.coverage}: {step.verdict.value}", step.reason or _cause(step.attempts)
        for attempt in step.attempts[:-1]:
            yield (
                "warning",
                f"{step.coverage}: attempt {attempt.number}",
                f"{attempt.verdict.value}, {attempt.exit}",
            )
        for attempt in step.attempts[-1:]:
            yield from (_finding(finding, str(step.coverage)) for finding in attempt.findings)
    yield from (_finding(finding, "before the run") for finding in report.findings)
    yield from (("notice", "limitation", text) for text in report.limitations)


def _cause(attempts: tuple[AttemptResult, ...]) -> str:
    last = attempts[-1] if attempts else None
    if last is None or last.triage is None or last.triage.cause is None:
        return str(last.exit) if last is not None else "no attempt was made"
    cause = last.triage.cause
    return f"{last.triage.boundary.value}: {cause.what}: {cause.text.strip()} [{cause.where}]"


def _finding(finding: Finding, where: str) -> tuple[str, str, str]:
    place = f" [{finding.where}]" if str(finding.where) else ""
    remedy = f"\n{finding.remedy}" if finding.remedy else ""
    return _OF_SEVERITY[finding.severity], f"{where}: {finding.id}", f"{finding.what}{place}{remedy}"


def _command(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Escaped as the runner's command parser unescapes it."""
    text = text.replace("%", "%25").replace("\r", "%0D")
    return _LINE_END.sub("%0A", text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
