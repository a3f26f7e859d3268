"""Follows the console log of a running attempt and reads its progress, incrementally and cheaply."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from proveout.domain.loop import Progress
from proveout.flow.observer import ProgressState

_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 16
_FARTHEST_BEHIND = 1 << 24


class LogFollower:
    """Reads what is new in a log on each call; patterns are RE2, so no line can make them slow."""

    def __init__(self, log: Path, progress: Progress) -> None:
        import re2

        self._log, self._offset, self._rest, self._began = log, 0, b"", time.time()
        self._step = re2.compile(progress.step) if progress.step else None
        self._values = {
            name: re2.compile(pattern)
            for name, pattern in (("reward", progress.reward), ("loss", progress.loss))
            if pattern
        }
        self._phases = [(name, re2.compile(pattern)) for name, pattern in progress.phases.items()]
        self.state = ProgressState()

    def read(self) -> ProgressState:
        """The state after everything that the log holds now; where it grows too fast, after its newest part."""
        self.state.seconds = time.time() - self._began
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size - self._offset > _FARTHEST_BEHIND:
                self._offset, self._rest = size - _FARTHEST_BEHIND, b""
            file.seek(self._offset)
            while self._offset < size and (chunk := file.read(_CHUNK)):
                self._offset += len(chunk)
                *lines, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
                self._rest = self._rest[-_LONGEST_LINE:]
                for line in lines:
                    self._line(line[:_LONGEST_LINE].decode(errors="replace"))
        return self.state

    def _line(self, line: str) -> None:
        if self._step and (found := self._step.search(line)):
            self.state.step, self.state.total = int(found["step"]), int(found["total"])
            self.state.phase = "training"
        for name, pattern in self._values.items():
            if found := pattern.search(line):
                with contextlib.suppress(ValueError):
                    setattr(self.state, name, float(found["value"]))
        for name, pattern in self._phases:
            if pattern.search(line):
                self.state.phase = name
