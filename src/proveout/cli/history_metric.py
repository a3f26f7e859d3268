"""``proveout history metric``: one metric over runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.cli.history_options import Asked, filters

if TYPE_CHECKING:
    from proveout.store.history.records import MetricRow

STATISTICS = {
    "tail": "mean of the last 10 steps",
    "last": "",
    "first": "",
    "median": "",
    "low": "",
    "high": "",
}


@click.command("metric")
@click.argument("tag")
@click.option(
    "--statistic",
    type=click.Choice(list(STATISTICS)),
    help="Which value of a run: tail (the mean of its last 10), last, first, median, low or high. "
    "[tail; median for series of the machine]",
)
@filters
@options.as_json
def command(tag: str, statistic: str | None, asked: Asked, as_json: bool) -> int:
    """How TAG went from run to run, oldest first, for each step. TAG may hold * and ?."""
    from proveout.domain.errors import UsageError, nearest
    from proveout.store.history.queries import metrics, tag_names

    index = asked.index()
    rows = metrics(index, asked.filter, (tag,))
    if not rows:
        known = tag_names(index)
        raise UsageError(
            f"no run that fits has {tag!r}{'' if tag in known else nearest(tag, known)}", where="history"
        )
    lines: dict[tuple[str, str, str], list[tuple[MetricRow, float | None]]] = {}
    for row in rows:
        name = statistic or ("median" if row.machine else "tail")
        key = (f"{row.loop} L{row.level} {row.variant}", row.tag, name)
        lines.setdefault(key, []).append((row, None if row.non_finite else getattr(row, name)))
    if as_json:
        options.echo_json([_as_data(key, points) for key, points in lines.items()])
    else:
        for key, points in lines.items():
            _show(key, points)
    return 0


def _as_data(key: tuple[str, str, str], points: list[tuple[MetricRow, float | None]]) -> dict[str, object]:
    coverage, tag, statistic = key
    names = ("run", "started", "verdict", "model", "change", "points", "non_finite")
    rows = [{name: getattr(row, name) for name in names} | {"value": value} for row, value in points]
    return {"coverage": coverage, "tag": tag, "statistic": statistic, "points": rows}


def _show(key: tuple[str, str, str], points: list[tuple[MetricRow, float | None]]) -> None:
    import math

    from proveout.domain.metrics import Series
    from proveout.judge.sparkline import bars_for, sparkline

    coverage, tag, statistic = key
    values = {place: math.nan if value is None else value for place, (_, value) in enumerate(points)}
    bars, _ = sparkline(Series.of(values), bars=bars_for(sys.stdout.encoding))
    click.echo(f"{coverage}: {tag}, {statistic} of each of {len(points)} runs  {bars}")
    for row, value in points:
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.started))
        shown = "not finite" if value is None else f"{value:.6g}"
        parts = [row.run, started, f"{shown:>12}", row.verdict, row.model, row.change]
        click.echo("  " + "  ".join(part for part in parts if part))
