"""Plain text in the shape that both end-to-end testing documents ask for."""

from __future__ import annotations

from collections.abc import Iterable

from proveout.domain.finding import Citation
from proveout.domain.report import Report


def render(report: Report) -> str:
    """The report as plain text, one item a line."""
    lines = [
        f"Result: {report.result.value} - {report.summary}",
        f"Requested coverage: {', '.join(map(str, report.requested_coverage)) or 'none'}",
        f"Model: {report.model}",
        "",
        "Deliverables:",
        *(f"- {d.name}: {d.verdict.value} - {d.detail}" for d in report.deliverables),
        "",
        "Evidence:",
        *(f"- {line}" for line in map(citation, report.evidence)),
        *attribution(report),
        "",
        "Limitations:",
        *_items(report.limitations),
        "",
        "Follow-ups:",
        *_items(report.follow_ups),
    ]
    return "\n".join(lines) + "\n"


def attribution(report: Report) -> list[str]:
    """Whose failure each step is that was run again on the commit before the change, with every run of it."""
    if not report.attributions:
        return []
    lines = ["", "Attribution:"]
    for each in report.attributions:
        lines.append(f"- {each.summary}")
        for ran in each.runs:
            cause = f": {' '.join(ran.cause.split())}" if ran.cause else ""
            lines.append(f"  - {ran.side.value}: {ran.verdict.value}{cause} [{ran.directory}/run.log]")
    return lines


def citation(cited: Citation) -> str:
    """One piece of evidence on one line: what, the text as printed, and where it stands."""
    where = str(cited.where)
    text = " ".join(cited.text.split())
    return cited.what + (f": {text}" if text else "") + (f" [{where}]" if where else "")


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {text}" for text in texts] or ["- none"]
