"""Predicts where records begin: training logs repeat one sequence of record lengths step after step.

After a few hundred records the sequence is known; the headers that it predicts for the rest of a buffer are
compared with the bytes there in one go, and the prediction holds up to the first that differs.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any

from proveout.capture.events.crc import masked

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER = struct.Struct("<QI")
HEADER_SIZE = 12
OVERHEAD = 16
_MAX_PERIOD = 4096
_MAX_TRIES = 512
_BEFORE = 32


def header(length: int) -> bytes:
    """The first bytes of a record whose payload has this length."""
    packed = HEADER.pack(length, 0)[:8]
    return packed + masked(packed).to_bytes(4, "little")


class Predictor:
    """The repeating sequence of one file; ``_phase`` is the place in it of the next record."""

    def __init__(self) -> None:
        self._cycle: NDArray[Any] | None = None
        self._headers: NDArray[Any] | None = None
        self._phase = 0
        self._broke_at: int | None = None

    def learn(self, lengths: array[int]) -> int:
        """Take the sequence that the latest lengths repeat, if any; return its period, 0 without one.

        A sequence that failed may repeat within a longer one: one that explains the failure is tried first.
        """
        import numpy as np

        period = 0
        if self._broke_at is not None:
            period = _period(lengths, len(lengths) - self._broke_at + _BEFORE)
        period = period or _period(lengths)
        self._cycle = self._headers = None
        if period:
            latest = lengths[-period:]
            self._cycle = np.array(latest, np.int64)
            self._headers = np.frombuffer(b"".join(map(header, latest)), np.uint8).reshape(
                period, HEADER_SIZE
            )
            self._phase = 0
        return period

    def extend(self, data: bytes, pos: int, starts: array[int], lengths: array[int]) -> int:
        """Append the whole records at ``pos`` that the sequence predicts rightly; return the position after."""
        import numpy as np

        self._broke_at = None
        if self._cycle is None or self._headers is None:
            return pos
        cycle = np.roll(self._cycle, -self._phase)
        sizes = cycle + OVERHEAD
        rows = (len(data) - pos) // int(sizes.sum()) + 1
        ends = pos + np.cumsum(np.tile(sizes, rows))
        count = int(np.searchsorted(ends, len(data), side="right"))
        if count == 0:
            return pos
        ends = ends[:count]
        sequence = np.tile(cycle, rows)[:count]
        begins = ends - sequence - OVERHEAD
        windows = np.ndarray((len(data) - HEADER_SIZE + 1, HEADER_SIZE), np.uint8, data, strides=(1, 1))
        order = (self._phase + np.arange(count)) % len(cycle)
        same = (windows[begins] == self._headers[order]).all(axis=1)
        good = count if same.all() else int(same.argmin())
        starts.frombytes((begins[:good] + HEADER_SIZE).tobytes())
        lengths.frombytes(sequence[:good].tobytes())
        if good < count:
            self._broke_at = len(starts)
        self._phase = (self._phase + good) % len(cycle)
        return int(ends[good - 1]) if good else pos


def _period(lengths: array[int], window: int | None = None) -> int:
    """The shortest period that the last ``window`` lengths (or two whole periods) have, 0 where none shows."""
    count = len(lengths)
    tries = 0
    for period in range(1, min(_MAX_PERIOD, count // 2 if window is None else count - window) + 1):
        if lengths[-1 - period] == lengths[-1]:
            span = window or period
            if lengths[-span:] == lengths[-span - period : -period]:
                return period
            tries += 1
            if tries == _MAX_TRIES:
                return 0
    return 0
