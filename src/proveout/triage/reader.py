"""Reading a log of any size in constant memory: plain or gzip, any bytes, lines of any length."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from proveout.domain.errors import UsageError

BLOCK = 1 << 20
OVERLAP = 1024
LARGE = 32 * BLOCK
"""From here on a log pays for what takes a while to get ready."""
_GZIP_MAGIC = b"\x1f\x8b"


class Block(NamedTuple):
    """A run of whole lines (or a piece of one very long line): ``line`` counts from 1, ``offset`` in bytes.

    ``fresh`` is where bytes begin that the previous block did not hold: a line longer than a block is cut
    into pieces that overlap, so that no pattern falls between two of them.
    """

    data: bytes
    line: int
    offset: int
    fresh: int = 0


def open_log(path: Path) -> IO[bytes]:
    """Open a log for reading bytes, through gzip where its first bytes say so. Raises UsageError."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UsageError("is a directory, not a log", where=str(path), remedy="name the log file in it")
        stream = path.open("rb")
    except FileNotFoundError:
        raise UsageError("no such file", where=str(path), remedy="check the path of the log") from None
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error
    if stat.S_ISREG(mode) and os.pread(stream.fileno(), 2, 0) == _GZIP_MAGIC:
        return cast(IO[bytes], _Gzip(stream))
    return stream


class _Gzip:
    """A gzip stream that ends where it can no longer be read: what came before still counts."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = gzip.GzipFile(fileobj=stream)

    def __enter__(self) -> _Gzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; empty at the end or where the stream is damaged."""
        got = bytearray()
        while len(got) < size:
            try:
                piece = self._stream.read1(size - len(got))
            except (EOFError, OSError, zlib.error):
                break
            if not piece:
                break
            got += piece
        return bytes(got)


def blocks(stream: IO[bytes], size: int = BLOCK) -> Iterator[Block]:
    """The stream as blocks that end at a line end wherever a line end comes within ``size`` bytes."""
    line, offset, carry, fresh = 1, 0, b"", 0
    while True:
        piece = stream.read(size)
        if not piece:
            if len(carry) > fresh:
                yield Block(carry, line, offset, fresh)
            return
        data = carry + piece
        cut = data.rfind(b"\n") + 1
        if cut:
            yield Block(data[:cut], line, offset, fresh)
            line += _newlines(data, cut) if offset >= LARGE else data.count(b"\n", 0, cut)
            offset, carry, fresh = offset + cut, data[cut:], 0
        elif len(data) >= size:
            yield Block(data, line, offset, fresh)
            offset, carry, fresh = offset + len(data) - OVERLAP, data[-OVERLAP:], OVERLAP
        else:
            carry = data


def _newlines(data: bytes, stop: int) -> int:
    """As ``bytes.count``, five times as fast; worth the import of numpy where there is much to count."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8, stop) == ord("\n")))


def line_number(path: Path, number: int) -> str:
    """The text of line ``number`` (from 1) of a log. Raises UsageError where there is no such line."""
    with open_log(path) as stream:
        for block in blocks(stream):
            inside = number - block.line
            lines = block.data.split(b"\n")
            if inside < len(lines) - (1 if block.data.endswith(b"\n") else 0):
                return lines[inside].decode("utf-8", "replace")
    raise UsageError(f"has no line {number}", where=str(path))
