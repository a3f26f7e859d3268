"""A series as one line of text, with its offending steps marked below."""

from __future__ import annotations

import math
from collections.abc import Collection

from proveout.domain.metrics import Series

_BARS = "▁▂▃▄▅▆▇█"
_NOT_A_NUMBER = "x"


def sparkline(series: Series, offending: Collection[int] = (), width: int = 60) -> tuple[str, str]:
    """The bars and the marks below them, at most ``width`` columns each.

    A column stands for one step, or for several neighbouring ones when there are more: their mean, ``x`` where
    any of them is not finite. A mark ``^`` stands under a column that holds an offending step.
    """
    points = list(series)
    columns = min(width, len(points))
    groups = [points[i * len(points) // columns : (i + 1) * len(points) // columns] for i in range(columns)]
    levels = [_level([value for _, value in group]) for group in groups]
    finite = [level for level in levels if level is not None]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    bars = "".join(_NOT_A_NUMBER if level is None else _bar(level, low, high) for level in levels)
    wanted = set(offending)
    marks = "".join("^" if any(step in wanted for step, _ in group) else " " for group in groups)
    return bars, marks.rstrip()


def _level(values: list[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    return sum(value / len(values) for value in values)


def _bar(level: float, low: float, high: float) -> str:
    span = high - low
    if not span or not math.isfinite(span):
        return _BARS[3]
    return _BARS[min(int((level - low) / span * len(_BARS)), len(_BARS) - 1)]
