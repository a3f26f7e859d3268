"""The lines around the line that triage names, read from the log as data."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from proveout.domain.evidence import AttemptResult
from proveout.domain.layout import AttemptLayout
from proveout.domain.report import Excerpt

BEFORE, AFTER = 8, 6
LONGEST_LINE = 400


def excerpt(attempt: AttemptResult, files: AttemptLayout) -> Excerpt | None:
    """The cause's line with its neighbours; None where triage names no line or its file is gone."""
    cause = attempt.triage.cause if attempt.triage is not None else None
    if cause is None or cause.where.file is None or cause.where.line is None:
        return None
    path = Path(files.root) / cause.where.file
    first = max(1, cause.where.line - BEFORE)
    count = cause.where.line + AFTER - first + 1
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            lines = tuple(_short(line) for line in islice(file, first - 1, first - 1 + count))
    except OSError:
        return None
    if len(lines) <= cause.where.line - first:
        return None
    return Excerpt(file=str(path), first=first, lines=lines, marked=cause.where.line)


def _short(line: str) -> str:
    """What a terminal would show last of the line, cut where it is long."""
    shown = line.rstrip("\r\n").rpartition("\r")[2]
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]} … ({len(shown)} characters)"
