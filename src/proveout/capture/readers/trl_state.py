"""The ``trainer_state.json`` of transformers and TRL: ``log_history``, a list of log dicts with a step."""

from __future__ import annotations

import re
from pathlib import Path

from proveout.capture.jsondoc import Pairs, load
from proveout.capture.numbers import plain, whole
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading

_SHAPE = re.compile(rb'\s*\{.*?"(?:log_history|best_metric|global_step)"\s*:', re.DOTALL)


def read(path: Path) -> list[Reading]:
    """All numbers of all log dicts, under the names that the trainer gave them."""
    reading = Reading(str(path))
    modified = path.stat().st_mtime
    reading.seen(modified, modified)
    document = load(path, reading)
    if document is None:
        return [reading]
    history = dict(document).get("log_history") if isinstance(document, Pairs) else None
    if not isinstance(history, list) or isinstance(history, Pairs):
        reading.note("trl-state.shape", "no list log_history", remedy="give a trainer_state.json")
        return [reading]
    for index, entry in enumerate(history):
        step = whole(dict(entry).get("step")) if isinstance(entry, Pairs) else None
        if step is None:
            reading.note("trl-state.entry", f"entry {index} of log_history has no whole step; left out")
            continue
        for key, value in entry:
            if key == "step" or isinstance(value, list):
                continue
            number = plain(value)
            if number is None:
                reading.note("trl-state.value", "the value is no number; left out", metric=key, step=step)
            else:
                reading.add(key, step, number, modified)
    return [reading]


def recognises(_path: Path, head: bytes) -> bool:
    """Whether the text is an object with the keys of a trainer state."""
    return _SHAPE.match(head) is not None and b"\n" in head[:4]


READER = Reader("trl-state", read, recognises, "trainer_state.json")
