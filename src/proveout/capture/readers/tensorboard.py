"""TensorBoard event files."""

from __future__ import annotations

import re
from pathlib import Path

from proveout.capture.events.crc import LengthCheck
from proveout.capture.events.file import EventReader
from proveout.capture.events.frames import MAX_RECORD
from proveout.capture.events.predict import HEADER, HEADER_SIZE
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading

_NAMED_TIME = re.compile(r"tfevents\.(\d{9,11})(?:\.|$)")


def read(path: Path) -> list[Reading]:
    """All scalars of one event file; damage and a cut last record are findings with their byte offset."""
    reading = Reading(str(path))
    reader = EventReader(path, reading)
    reader.read_new()
    reader.note_end()
    if reading.started is None:
        named = _NAMED_TIME.search(path.name)
        began = float(named[1]) if named else path.stat().st_mtime
        reading.seen(began, began)
    return [reading]


def recognises(_path: Path, head: bytes) -> bool:
    """Whether the first bytes are a length with its checksum."""
    if len(head) < HEADER_SIZE:
        return False
    length, crc = HEADER.unpack_from(head)
    return length <= MAX_RECORD and LengthCheck()(length, crc)


READER = Reader("tensorboard", read, recognises, "*tfevents*")
