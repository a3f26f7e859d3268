"""Wall-clock time of named phases, and the console line that announces each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Seconds a phase, summed over its uses since the last ``take``."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, line: str = "") -> Iterator[None]:
        """Time the block as ``name``, after printing ``line`` if there is one."""
        if line:
            print(f"> {line}", flush=True)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def add(self, name: str, seconds: float) -> None:
        """Count ``seconds`` that were measured elsewhere."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def take(self) -> dict[str, float]:
        """The seconds of every phase so far, and start anew."""
        seconds, self._seconds = self._seconds, {}
        return seconds
