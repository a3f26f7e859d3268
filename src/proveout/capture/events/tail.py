"""Follows a live event file: each call reads only what is new."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proveout.capture.events.file import EventReader
from proveout.capture.reading import Points, Reading
from proveout.domain.finding import Finding


class TailUpdate(NamedTuple):
    """What one look at the file brought: new points by tag and findings.

    ``restarted`` says that the file was replaced or cut and is read from its start; ``more`` that the next call
    has more to read at once.
    """

    points: dict[str, Points]
    findings: list[Finding]
    restarted: bool = False
    more: bool = False


class TensorBoardTail:
    """A live event file, read incrementally.

    A record that is still being written is left for the next call. A file that is missing gives nothing;
    one that was replaced or cut is read again from its start. One call reads about ``limit`` bytes at most, so
    that a large file is taken in pieces of bounded memory.
    """

    def __init__(self, path: Path | str, limit: int = 64 << 20) -> None:
        self.limit = limit
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None
        self._size = -1
        self._reader = EventReader(self.path, Reading(str(self.path)))

    @property
    def offset(self) -> int:
        """The byte at which the next unread record begins."""
        return self._reader.offset

    def read_new(self) -> TailUpdate:
        """The points written since the last call."""
        try:
            state = self.path.stat()
            identity = (state.st_dev, state.st_ino)
            anew = self._identity is not None and (
                identity != self._identity or state.st_size < self._reader.offset
            )
            if anew:
                self._reader = EventReader(self.path, Reading(str(self.path)))
                self._size = -1
            self._identity = identity
            if state.st_size == self._size:
                return TailUpdate({}, [])
            reading = self._reader.reading = Reading(str(self.path))
            before = self._reader.offset
            self._reader.read_new(self.limit)
        except OSError:
            return TailUpdate({}, [])
        more = self._reader.offset - before >= self.limit
        self._size = -1 if more else state.st_size
        if self._reader.lost:
            self._reader.note_end()
        return TailUpdate(reading.points, reading.all_findings(), anew, more)
