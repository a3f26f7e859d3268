"""Faults of what a run says about itself."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from proveout_bench.metrics.writer import MetricsWriter

LOST = "token_mult_prob_error"


def hang() -> None:
    """Wait for a signal that nobody sends."""
    print("> Waiting for the other ranks...", flush=True)
    signal.pause()


def fail_with_status_zero() -> None:
    """A failure that a wrapper prints and forgets."""
    try:
        raise RuntimeError("the update could not be computed")
    except RuntimeError:
        traceback.print_exc()
    sys.exit(0)


def spoiled(name: str, at: int, writer: MetricsWriter) -> MetricsWriter:
    """``writer``, or one that writes what ``name`` says."""
    kinds: dict[str, Any] = {
        "report-stale-metrics": Stale,
        "report-series-missing": Missing,
        "report-frozen-metrics": Frozen,
        "report-nan-once": NanOnce,
    }
    return kinds[name](writer, at) if name in kinds else writer


class Missing:
    """One series is not written at all."""

    def __init__(self, writer: MetricsWriter, at: int) -> None:
        self._writer, self._at = writer, at

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """Without the agreement of generation and policy."""
        self._writer.write(step, prefix, {name: value for name, value in values.items() if name != LOST})

    def close(self) -> None:
        """Close the real one."""
        self._writer.close()


class NanOnce(Missing):
    """One value in the middle is NaN."""

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """At one step."""
        spoiled = {LOST: float("nan")} if step == self._at and LOST in values else {}
        self._writer.write(step, prefix, {**values, **spoiled})


class Frozen(Missing):
    """The numbers of the first step are written at every step."""

    def __init__(self, writer: MetricsWriter, at: int) -> None:
        super().__init__(writer, at)
        self._first: dict[str, dict[str, float]] = {}

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """Always the same."""
        self._writer.write(step, prefix, self._first.setdefault(prefix, dict(values)))


class Stale(Missing):
    """What is written bears the time of a run of yesterday."""

    def write(self, step: int, prefix: str, values: Mapping[str, float]) -> None:
        """A day ago."""
        import time

        stamped: Any = self._writer
        for name, value in values.items():
            stamped.add(f"{prefix}/{name}", value, step, time.time() - 86400)
        self._writer.write(step, prefix, {})
