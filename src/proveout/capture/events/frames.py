"""Where the records of an event file begin and end.

A record is a uint64 length, its masked CRC, the payload and the payload's masked CRC, all little-endian
(tensorflow/core/lib/io/record_writer.cc).
"""

from __future__ import annotations

import re
from array import array
from enum import Enum
from typing import NamedTuple

from proveout.capture.events.crc import LengthCheck
from proveout.capture.events.predict import HEADER, HEADER_SIZE, OVERHEAD, Predictor

MAX_RECORD = 64 << 20
_LEARN = 512
_PLAUSIBLE = re.compile(rb"(?=(?:[^\0].{3}|.[^\0].{2}|.{2}[^\0].|.{3}[^\0])\0{4})", re.DOTALL)


class Stop(Enum):
    """Why a scan ended: more bytes are needed, the next length is damaged, or the record is too large."""

    MORE = "more"
    DAMAGED = "damaged"
    HUGE = "huge"


class Scan(NamedTuple):
    """Payload offsets and lengths of the whole records of a buffer, and where and why the scan stopped."""

    starts: array[int]
    lengths: array[int]
    stopped: int
    why: Stop
    needed: int


def scan(data: bytes, pos: int, lengths_ok: LengthCheck, predictor: Predictor | None = None) -> Scan:
    """Frame ``data`` from ``pos``. ``needed`` is the size of the record that did not fit, 0 if unknown."""
    starts, lengths = array("q"), array("q")
    end = len(data)
    learn = _LEARN
    if predictor is not None:
        pos = predictor.extend(data, pos, starts, lengths)
        learn += len(starts)
    while True:
        if end - pos < HEADER_SIZE:
            return Scan(starts, lengths, pos, Stop.MORE, 0)
        length, crc = HEADER.unpack_from(data, pos)
        if not lengths_ok(length, crc):
            return Scan(starts, lengths, pos, Stop.DAMAGED, 0)
        if length > MAX_RECORD:
            return Scan(starts, lengths, pos, Stop.HUGE, length + OVERHEAD)
        after = pos + OVERHEAD + length
        if after > end:
            return Scan(starts, lengths, pos, Stop.MORE, length + OVERHEAD)
        starts.append(pos + HEADER_SIZE)
        lengths.append(length)
        pos = after
        if predictor is not None and len(starts) == learn:
            period = predictor.learn(lengths)
            pos = predictor.extend(data, pos, starts, lengths)
            learn = len(starts) + (max(_LEARN, 2 * period) if period else max(_LEARN, len(starts)))


def resync(data: bytes, pos: int, lengths_ok: LengthCheck) -> int | None:
    """The first position from ``pos`` on where a length carries its own checksum, or None."""
    for match in _PLAUSIBLE.finditer(data, pos):
        at = match.start()
        if at + HEADER_SIZE > len(data):
            return None
        length, crc = HEADER.unpack_from(data, at)
        if length <= MAX_RECORD and lengths_ok(length, crc):
            return at
    return None
