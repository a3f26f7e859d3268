"""verl's console: ``step:N - key:value - key:value``, as its console logger prints it."""

from __future__ import annotations

import re
from pathlib import Path

from proveout.capture.lines import Line, lines
from proveout.capture.numbers import number
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading
from proveout.domain.finding import Severity

_STEP = re.compile(r"(?:^|[\s)])step:(\d{1,18})(?= - |\s*$)")


def read(path: Path) -> list[Reading]:
    """One reading for each run that the log holds: a step lower than the one before begins another run."""
    modified = path.stat().st_mtime
    readings = [Reading(str(path))]
    last = -1
    for line in lines(path):
        match = _STEP.search(line.text)
        if match is None:
            continue
        step = int(match[1])
        if step < last:
            readings.append(Reading(f"{path}:{line.number}"))
        last = step
        _take(line, step, match.end(), readings[-1], modified)
    for reading in readings:
        reading.seen(modified, modified)
    return readings


def _take(line: Line, step: int, start: int, reading: Reading, modified: float) -> None:
    parts = line.text[start:].split(" - ")[1:]
    if not line.ended and parts:
        reading.note(
            "console.truncated",
            "the last line has no end; its last value may be cut and is left out",
            severity=Severity.NOTICE,
            line=line.number,
            step=step,
        )
        parts.pop()
    for part in parts:
        tag, colon, text = part.strip().rpartition(":")
        value = number(text) if colon and tag else None
        if value is None:
            reading.note(
                "console.value",
                f"{part.strip()[:80]!r} is no key:number; left out",
                line=line.number,
                metric=tag[:200] or None,
                step=step,
            )
        else:
            reading.add(tag, step, value, modified)


def recognises(path: Path, _head: bytes) -> bool:
    """Whether any line of the log is a step line."""
    return any(
        (match := _STEP.search(line.text)) and line.text.startswith(" - ", match.end())
        for line in lines(path)
    )


READER = Reader("verl-console", read, recognises, "*.log")
