"""Reading a log of any size in constant memory: plain or gzip, any bytes, lines of any length."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from proveout.domain.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
        return io.BufferedReader(_Gzip(stream), BLOCK)
    return stream


class _Gzip(io.RawIOBase):
    """A gzip stream that ends where it can no longer be read: what came before still counts."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = gzip.GzipFile(fileobj=stream)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer from its start; how many bytes, 0 at the end or where the stream is damaged."""
        target = memoryview(buffer)
        try:
            piece = self._stream.read1(len(target))
        except (EOFError, OSError, zlib.error):
            return 0
        target[: len(piece)] = piece
        return len(piece)


def blocks(stream: IO[bytes], size: int = BLOCK) -> Iterator[Block]:
    """The stream as blocks that end at a line end wherever a line end comes within ``size`` bytes."""
    line, offset, carry, fresh = 1, 0, b"", 0
    while piece := stream.read(size):
        rest = b"" if piece.endswith(b"\n") else stream.readline(size)
        data = b"".join((carry, piece, rest))
        if len(data) - fresh < size and not data.endswith(b"\n"):
            carry = data
            continue
        yield Block(data, line, offset, fresh)
        line += _newlines(data) if offset >= LARGE else data.count(b"\n")
        fresh = 0 if data.endswith(b"\n") else min(OVERLAP, len(data))
        carry = data[len(data) - fresh :]
        offset += len(data) - fresh
    if len(carry) > fresh:
        yield Block(carry, line, offset, fresh)


def _newlines(data: bytes) -> int:
    """As ``bytes.count``, five times as fast; worth the import of numpy where there is much to count."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def line_number(path: Path, number: int) -> str:
    """The text of line ``number`` (from 1) of a log. Raises UsageError where there is no such line."""
    with open_log(path) as stream:
        for block in blocks(stream):
            inside = number - block.line
            lines = block.data.split(b"\n")
            if inside < len(lines) - (1 if block.data.endswith(b"\n") else 0):
                return lines[inside].decode("utf-8", "replace")
    raise UsageError(f"has no line {number}", where=str(path))
