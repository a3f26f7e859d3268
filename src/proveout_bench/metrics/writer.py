"""Where scalars go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from torch.utils.tensorboard import SummaryWriter


class MetricsWriter(Protocol):
    """A sink of scalars that can be read while the run goes on."""

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """Record each ``prefix/name`` at ``step``, and make it readable now."""
        ...

    def close(self) -> None:
        """Finish the record."""
        ...


class TensorBoardWriter:
    """TensorBoard event files in one directory, flushed at each write."""

    def __init__(self, folder: Path) -> None:
        self._writer = SummaryWriter(str(folder))

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """Scalars as they are, NaN and infinity included."""
        for name, value in values.items():
            self._writer.add_scalar(f"{prefix}/{name}", value, step)
        self._writer.flush()

    def add(self, tag: str, value: float, step: int, wall: float) -> None:
        """One scalar with a time of its own (seconds since the epoch)."""
        self._writer.add_scalar(tag, value, step, walltime=wall)

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()


class NoWriter:
    """Of the ranks that do not write."""

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
