"""A table of trends for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from proveout.pytest_plugin.history.trend import State, Trend

_BARS = "▁▂▃▄▅▆▇█"
_STYLE = {State.REGRESSED: "red", State.IMPROVED: "green", State.STEADY: "", State.UNDECIDED: "yellow"}
SPARK_VALUES = 20


def sparkline(values: Sequence[float | None]) -> str:
    """The last values as bars from lowest to highest; ``!`` for one that is not finite."""
    shown = list(values)[-SPARK_VALUES:]
    finite = [value for value in shown if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_bar(value, low, high) for value in shown)


def _bar(value: float | None, low: float, high: float) -> str:
    if value is None or not math.isfinite(value):
        return "!"
    scale = max(abs(low), abs(high)) or 1.0
    span = high / scale - low / scale
    return _BARS[round((value / scale - low / scale) / span * (len(_BARS) - 1))] if span else _BARS[3]


def render(trends: Sequence[Trend], console: Console) -> None:
    """Print the trends."""
    table = Table("State", "Test", "Metric", "Newest", "Median", "Trend", "Why", title="Test metrics")
    for trend in trends:
        newest = trend.values[-1] if trend.values else None
        table.add_row(
            f"[{_STYLE[trend.state]}]{trend.state}[/]" if _STYLE[trend.state] else trend.state.value,
            trend.test.replace("[", r"\["),
            trend.metric,
            "-" if newest is None else f"{newest:g}",
            "-" if trend.median is None else f"{trend.median:g}",
            sparkline(trend.values),
            trend.reason,
        )
    console.print(table)
