"""Follows a live event file: each call reads only what is new."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proveout.capture.events.file import EventReader
from proveout.capture.reading import Points, Reading
from proveout.domain.finding import Finding


class TailUpdate(NamedTuple):
    """What one look at the file brought: new points by tag, findings, and whether the file began anew."""

    points: dict[str, Points]
    findings: list[Finding]
    restarted: bool


class TensorBoardTail:
    """A live event file, read incrementally.

    A record that is still being written is left for the next call. A file that is missing gives nothing;
    one that was replaced or cut is read again from its start.
    """

    def __init__(self, path: Path | str) -> None:
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
                return TailUpdate({}, [], anew)
            self._size = state.st_size
            reading = self._reader.reading = Reading(str(self.path))
            self._reader.read_new()
        except OSError:
            return TailUpdate({}, [], False)
        return TailUpdate(reading.points, reading.all_findings(), anew)
