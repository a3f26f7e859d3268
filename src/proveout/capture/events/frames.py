"""Where the records of an event file begin and end.

A record is a uint64 length, its masked CRC, the payload and the payload's masked CRC, all little-endian
(tensorflow/core/lib/io/record_writer.cc). Training logs repeat one sequence of lengths step after step, so
after a few hundred records the rest of a buffer is predicted and the prediction verified with one comparison.
"""

from __future__ import annotations

import re
import struct
from array import array
from enum import Enum
from typing import NamedTuple

from proveout.capture.events.crc import LengthCheck

HEADER = struct.Struct("<QI")
HEADER_SIZE = 12
OVERHEAD = 16
MAX_RECORD = 64 << 20
_LEARN = 512
_MAX_PERIOD = 4096
_MAX_TRIES = 64
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


def scan(data: bytes, pos: int, lengths_ok: LengthCheck, *, predict: bool) -> Scan:
    """Frame ``data`` from ``pos``. ``needed`` is the size of the record that did not fit, 0 if unknown."""
    starts, lengths = array("q"), array("q")
    end = len(data)
    learn = _LEARN
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
        if predict and len(starts) == learn:
            period = _period(lengths)
            if period:
                pos = _predict(data, pos, starts, lengths, period)
            learn = len(starts) + max(_LEARN, 2 * period)


def _period(lengths: array[int]) -> int:
    """The shortest recent period of the record lengths, 0 where none shows."""
    count = len(lengths)
    tries = 0
    for period in range(1, min(_MAX_PERIOD, count // 2) + 1):
        if lengths[-1 - period] == lengths[-1]:
            if lengths[-period:] == lengths[-2 * period : -period]:
                return period
            tries += 1
            if tries == _MAX_TRIES:
                return 0
    return 0


def _predict(data: bytes, pos: int, starts: array[int], lengths: array[int], period: int) -> int:
    """Append the records that follow the last ``period`` lengths over and over; return the new position."""
    import numpy as np

    cycle = np.array(lengths[-period:], dtype=np.int64)
    sizes = cycle + OVERHEAD
    total = int(sizes.sum())
    rows = (len(data) - pos) // total
    if rows == 0:
        return pos
    begin = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    offsets = (pos + begin[None, :] + total * np.arange(rows)[:, None]).ravel()
    windows = np.ndarray((len(data) - HEADER_SIZE + 1, HEADER_SIZE), np.uint8, data, strides=(1, 1))
    recent = np.array(starts[-period:], dtype=np.int64) - HEADER_SIZE
    same = (windows[offsets].reshape(rows, -1) == windows[recent].reshape(1, -1)).all(axis=1)
    good = rows if same.all() else int(same.argmin())
    starts.frombytes((offsets[: good * period] + HEADER_SIZE).tobytes())
    lengths.frombytes(np.tile(cycle, good).tobytes())
    return pos + good * total


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
