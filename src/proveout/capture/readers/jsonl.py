"""JSON lines: an object a line with a step and numbers, or ``{tag, step, value}``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout.capture.jsondoc import Pairs, parse
from proveout.capture.numbers import plain, whole
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading
from proveout.domain.finding import Severity

STEP_KEYS = ("step", "global_step", "_step", "training/global_step", "trainer/global_step", "iteration")
TIME_KEYS = ("wall_time", "_timestamp", "timestamp", "time", "Wall time")


def read(path: Path) -> list[Reading]:
    """All numbers of all lines; nested objects give ``outer/inner`` tags. Bad lines are findings."""
    reading = Reading(str(path))
    modified = path.stat().st_mtime
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            row = _row(raw)
            if row is not None:
                _take(row, number, reading, modified)
            elif raw.endswith(b"\n"):
                reading.note("jsonl.malformed", "not a JSON object; left out", line=number)
            else:
                reading.note(
                    "jsonl.truncated", "the last line is not complete", severity=Severity.NOTICE, line=number
                )
    if reading.started is None:
        reading.seen(modified, modified)
    return [reading]


def _row(raw: bytes) -> Pairs | None:
    try:
        row = parse(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, Pairs) else None


def _take(row: Pairs, line: int, reading: Reading, modified: float) -> None:
    known = dict(row)
    step = next((whole(known[key]) for key in STEP_KEYS if key in known), None)
    if step is None:
        reading.note("jsonl.step", "no whole step on this line; left out", line=line)
        return
    stamps = [known[key] for key in TIME_KEYS if isinstance(known.get(key), int | float)]
    wall = float(stamps[0]) if stamps and 1e8 < stamps[0] < 1e11 else modified
    reading.seen(wall, wall)
    if isinstance(known.get("tag"), str) and "value" in known:
        row = Pairs([(known["tag"], known["value"])])
    for tag, value in flat(row):
        if tag in STEP_KEYS or tag in TIME_KEYS or isinstance(value, list):
            continue
        number = plain(value)
        if number is not None:
            reading.add(tag, step, number, wall)


def flat(row: Pairs, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The row's entries with nested objects flattened to ``outer/inner``."""
    for key, value in row:
        if isinstance(value, Pairs):
            yield from flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


def recognises(_path: Path, head: bytes) -> bool:
    """Whether the first line is by itself an object that names a step."""
    first = head.lstrip(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and any(key in row for key in STEP_KEYS)


READER = Reader("jsonl", read, recognises, "*.jsonl")
