"""Renderers of the one report model, a file per format. A new format is a file and a line."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from proveout.domain.errors import UsageError, nearest
from proveout.domain.report import Report

FORMATS: dict[str, tuple[str, str]] = {
    "text": ("txt", "proveout.report.text"),
    "markdown": ("md", "proveout.report.markdown"),
    "json": ("json", "proveout.report.json_document"),
}


def renderer(name: str) -> Callable[[Report], str]:
    """The renderer of this format. Raises UsageError that names the nearest known one."""
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"no report format {name!r}{nearest(name, FORMATS)}", remedy=f"known formats: {known}"
        )
    render: Callable[[Report], str] = import_module(FORMATS[name][1]).render
    return render
