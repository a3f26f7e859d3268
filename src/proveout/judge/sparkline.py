"""A series as one line of text, with its offending steps marked below."""

from __future__ import annotations

import math
from collections.abc import Collection

from proveout.domain.metrics import Series

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "12345678"
_NOT_A_NUMBER = "x"


def sparkline(
    series: Series, offending: Collection[int] = (), width: int = 60, bars: str = BARS
) -> tuple[str, str]:
    """The line and the marks below it, at most ``width`` columns each; ``bars`` are the levels, low to high.

    A column stands for one step, or for several neighbouring ones when there are more: their mean, ``x`` where
    any of them is not finite. A mark ``^`` stands under a column that holds an offending step.
    """
    points = list(series)
    columns = min(width, len(points))
    groups = [points[i * len(points) // columns : (i + 1) * len(points) // columns] for i in range(columns)]
    levels = [_level([value for _, value in group]) for group in groups]
    finite = [level for level in levels if level is not None]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    line = "".join(_NOT_A_NUMBER if level is None else _bar(level, low, high, bars) for level in levels)
    wanted = set(offending)
    marks = "".join("^" if any(step in wanted for step, _ in group) else " " for group in groups)
    return line, marks.rstrip()


def bars_for(encoding: str | None) -> str:
    """The levels that an output of this encoding can show."""
    try:
        BARS.encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return PLAIN
    return BARS


def _level(values: list[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    return sum(value / len(values) for value in values)


def _bar(level: float, low: float, high: float, bars: str) -> str:
    span = high - low
    if not span or not math.isfinite(span):
        return bars[3]
    return bars[min(int((level - low) / span * len(bars)), len(bars) - 1)]
