"""CSV: a step column and a column a tag, or rows of tag, step, value; TensorBoard's own CSV export too."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from proveout.capture.numbers import number, whole
from proveout.capture.reader import Reader
from proveout.capture.readers.jsonl import STEP_KEYS, TIME_KEYS
from proveout.capture.reading import Reading

_STEPS = {key.lower() for key in STEP_KEYS}
_TIMES = {key.lower() for key in TIME_KEYS}


def read(path: Path) -> list[Reading]:
    """All numbers. An empty cell is no point; a cell that is no number is a finding with its line."""
    reading = Reading(str(path))
    modified = path.stat().st_mtime
    reading.seen(modified, modified)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            _table(rows, reading, path, modified)
        except csv.Error as error:
            reading.note("csv.malformed", f"not readable as CSV: {error}", line=rows.line_num)
    return [reading]


def _table(rows: Iterator[list[str]], reading: Reading, path: Path, modified: float) -> None:
    header = [name.strip() for name in next(rows, [])]
    lower = [name.lower() for name in header]
    steps = [i for i, name in enumerate(lower) if name in _STEPS]
    if not steps:
        reading.note("csv.step", f"no step column among {', '.join(header[:10])[:200]!r}", line=1)
        return
    times = [i for i, name in enumerate(lower) if name in _TIMES]
    long = {"tag", "value"} <= set(lower)
    for line, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        step = whole(row[steps[0]]) if len(row) > steps[0] else None
        if step is None or len(row) > len(header):
            reading.note("csv.row", "no whole step, or more cells than columns; left out", line=line)
            continue
        stamp = number(row[times[0]]) if times and len(row) > times[0] else None
        wall = stamp if stamp is not None and 1e8 < stamp < 1e11 else modified
        if long and len(row) == len(header):
            cells = [(row[lower.index("tag")], row[lower.index("value")])]
        else:
            cells = [
                (path.stem if lower[i] == "value" else header[i], cell)
                for i, cell in enumerate(row)
                if i not in steps and i not in times
            ]
        _cells(cells, step, line, wall, reading)


def _cells(cells: list[tuple[str, str]], step: int, line: int, wall: float, reading: Reading) -> None:
    for tag, cell in cells:
        if not cell.strip():
            continue
        value = number(cell)
        if value is None:
            reading.note("csv.value", f"{cell[:80]!r} is no number; left out", line=line, metric=tag)
        else:
            reading.add(tag, step, value, wall)


def recognises(_path: Path, head: bytes) -> bool:
    """Whether the first line names a step column between commas."""
    first = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    names = [name.strip().strip('"').lower() for name in first.split(",")]
    return len(names) > 1 and any(name in _STEPS for name in names)


READER = Reader("csv", read, recognises, "*.csv")
