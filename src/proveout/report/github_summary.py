"""The job summary of a GitHub workflow: the pull request's Markdown, and a table of steps and checks."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.domain.evidence import StepResult
from proveout.domain.report import Report
from proveout.report import markdown
from proveout.report.markdown import escape

LARGEST = 900_000


def render(report: Report) -> str:
    """Markdown below the megabyte that GitHub takes; checks that do not fit are counted."""
    head = markdown.render(report) + "\n" + "\n".join(_steps(report)) + "\n"
    lines, size, left = [], len(head.encode()), 0
    rows = list(_checks(report))
    for row in rows:
        size += len(row.encode()) + 1
        if size > LARGEST:
            left += 1
        else:
            lines.append(row)
    if not rows:
        return head
    more = [f"| | {left} more in report.json | | |"] if left else []
    table = ["", "### Metric checks", "", "| Step | Check | Value | |", "|---|---|---|---|", *lines, *more]
    return head + "\n".join(table) + "\n"


def _steps(report: Report) -> Iterator[str]:
    yield from ("### Steps", "", "| Step | Verdict | Attempts | Time | Ended |", "|---|---|---|---|---|")
    for step in report.steps:
        yield (
            f"| {escape(str(step.coverage))} | {step.verdict.value} | {len(step.attempts)} "
            f"| {_time(step)} | {escape(str(step.attempts[-1].exit) if step.attempts else step.reason)} |"
        )


def _checks(report: Report) -> Iterator[str]:
    for step in report.steps:
        for row in step.attempts[-1].checks if step.attempts else ():
            said = "holds" if row.passed else "**fails**"
            told = f" {escape(row.message)}" if row.message else ""
            yield f"| {escape(str(step.coverage))} | {escape(row.check)} | {escape(row.value)} | {said}{told} |"


def _time(step: StepResult) -> str:
    return f"{sum(max(0.0, a.exit.finished - a.exit.started) for a in step.attempts):.0f} s"
