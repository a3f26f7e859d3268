"""Renderers of the one report model, a file per format. A new format is a file and a line."""

from __future__ import annotations

from importlib import import_module

from proveout.domain.errors import UsageError, nearest
from proveout.domain.report import Report
from proveout.report.clean import cleaned

FORMATS: dict[str, tuple[str, str]] = {
    "text": ("txt", "proveout.report.text"),
    "markdown": ("md", "proveout.report.markdown"),
    "json": ("json", "proveout.report.json_document"),
    "html": ("html", "proveout.report.html"),
    "junit": ("xml", "proveout.report.junit"),
    "github": ("github.txt", "proveout.report.github"),
    "github-summary": ("github-summary.md", "proveout.report.github_summary"),
}


def render(report: Report, form: str, *, redacted: bool = True) -> str:
    """The report in one format. ``redacted`` hides secrets, homes, hosts, addresses and user names.

    Raises UsageError for a format that is not known.
    """
    renderer = import_module(FORMATS[known_format(form)][1])
    text: str = renderer.render(cleaned(report, redacted=redacted))
    return text


def known_format(form: str) -> str:
    """``form`` itself. Raises UsageError that names the nearest format where it is not known."""
    if form not in FORMATS:
        remedy = f"known formats: {', '.join(FORMATS)}"
        raise UsageError(f"no report format {form!r}{nearest(form, FORMATS)}", remedy=remedy)
    return form
