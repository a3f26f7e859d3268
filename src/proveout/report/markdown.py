"""Markdown for a pull request: the same shape, with the evidence folded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proveout.domain.report import Report
from proveout.report.text import citation

_MARK = {
    "Pass": "✅",
    "Fail": "❌",
    "Blocked": "⛔",
    "Skipped": "⏭️",
    "Not requested": "➖",
    "Incomplete": "⏸️",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~@])")


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; text from logs is escaped and mentions nobody."""
    coverage = ", ".join(map(str, report.requested_coverage)) or "none"
    lines = [
        f"## {_MARK[report.result.value]} Result: {report.result.value}",
        "",
        escape(report.summary),
        "",
        f"**Requested coverage:** {escape(coverage)}  ",
        f"**Model:** {escape(report.model)}",
        "",
        "| Deliverable | Verdict | Detail |",
        "|---|---|---|",
        *(
            f"| {escape(d.name)} | {_MARK[d.verdict.value]} {d.verdict.value} | {escape(d.detail)} |"
            for d in report.deliverables
        ),
        "",
        "<details><summary>Evidence</summary>",
        "",
        *_items(citation(cited) for cited in report.evidence),
        "",
        "</details>",
        "",
        *_attribution(report),
        "**Limitations**",
        "",
        *_items(report.limitations),
        "",
        "**Follow-ups**",
        "",
        *_items(report.follow_ups),
    ]
    return "\n".join(lines) + "\n"


def _attribution(report: Report) -> list[str]:
    if not report.attributions:
        return []
    rows = [
        f"| {escape(each.step)} | {each.answer.value} | {escape(each.summary)} |"
        for each in report.attributions
    ]
    return ["**Attribution**", "", "| Step | Answer | Runs |", "|---|---|---|", *rows, ""]


def escape(text: str) -> str:
    """Text in which nothing is markup, on one line; an @ is kept from mentioning anybody."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\@", "@\u200b")


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {escape(text)}" for text in texts] or ["- none"]
