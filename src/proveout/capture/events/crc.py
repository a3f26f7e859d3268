"""Checksums of event files: masked CRC-32C, record by record and for many records of one length at once.

Masking: tensorflow/core/lib/hash/crc32c.h. CRC is linear over GF(2): the checksum of a record is that of the
record with some bytes zeroed, xor one table entry for each of those bytes. Records that differ only in a few
places (time, step, value) are so verified by a few table look-ups each.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import google_crc32c

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<Q")


def masked(data: bytes) -> int:
    """The checksum that an event file stores for ``data``."""
    crc: int = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


class LengthCheck:
    """Whether a stored length carries its checksum; the checksums of lengths seen before are remembered."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def __call__(self, length: int, stored: int) -> bool:
        crc = self._known.get(length)
        if crc is None:
            crc = masked(_LENGTH.pack(length))
            if len(self._known) < 4096:
                self._known[length] = crc
        return crc == stored


class ByteTables:
    """``table(d)[b]``: what a byte ``b`` followed by ``d`` further bytes adds to a CRC-32C, uint32 [256]."""

    def __init__(self) -> None:
        import numpy as np

        zero = google_crc32c.value(b"\0")
        first = [google_crc32c.value(bytes([byte])) ^ zero for byte in range(256)]
        self._tables: list[NDArray[Any]] = [np.array(first, dtype=np.uint32)]

    def table(self, distance: int) -> NDArray[Any]:
        """The table for a byte that is ``distance`` bytes before the end."""
        while len(self._tables) <= distance:
            last = self._tables[-1]
            self._tables.append((last >> 8) ^ self._tables[0][last & 0xFF])
        return self._tables[distance]


def unmask(stored: NDArray[Any]) -> NDArray[Any]:
    """Plain CRC-32C values from masked ones, uint32 of any shape."""
    import numpy as np

    rotated = stored - np.uint32(_MASK_DELTA)
    return (rotated >> 17) | (rotated << 15)
