"""JSON of tags with values by step: ``{tag: {"step": value}}``, as NeMo-RL's dump and ours write it."""

from __future__ import annotations

import re
from pathlib import Path

from proveout.capture.jsondoc import Pairs, load
from proveout.capture.numbers import plain, whole
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading

_SHAPE = re.compile(rb'\s*\{\s*(?:\}\s*$|"(?:[^"\\]|\\.)*"\s*:\s*\{\s*(?:\}|"\s*-?\d))')


def read(path: Path) -> list[Reading]:
    """All series; NaN may stand bare, in quotes or as null. What is no number is a finding and left out."""
    reading = Reading(str(path))
    modified = path.stat().st_mtime
    reading.seen(modified, modified)
    document = load(path, reading)
    if document is None:
        return [reading]
    if not isinstance(document, Pairs):
        reading.note("json.shape", "not an object of tags: {tag: {step: value}} is expected")
        return [reading]
    for tag, series in document:
        if not isinstance(series, Pairs):
            reading.note("json.shape", "not an object of steps: {step: value} is expected", metric=tag)
            continue
        for key, value in series:
            step, number = whole(key), plain(value)
            if step is None:
                reading.note("json.step", f"step {key[:80]!r} is no whole number; left out", metric=tag)
            elif number is None:
                reading.note("json.value", "the value is no number; left out", metric=tag, step=step)
            else:
                reading.add(tag, step, number, modified)
    return [reading]


def recognises(_path: Path, head: bytes) -> bool:
    """Whether the text begins like an object of objects keyed by step."""
    return _SHAPE.match(head) is not None


READER = Reader("nemo-json", read, recognises, "metrics.json")
