"""``proveout check``: metric expressions on a metrics file; NeMo-RL's check_metrics.py, same arguments."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.judge.expressions import Outcome
    from proveout.judge.metricfile import MetricFile


@click.command("check")
@click.argument("json_file", type=click.Path(path_type=Path))
@click.argument("checks", nargs=-1, required=True)
@click.option("--table-width", type=click.IntRange(min=20), help="Overall width of the table.")
@click.option("--explain", is_flag=True, help="Show each series as a line, with the offending steps marked.")
@options.as_json
def command(
    json_file: Path, checks: tuple[str, ...], table_width: int | None, explain: bool, as_json: bool
) -> int:
    """Check conditions such as 'max(data["train/reward"]) > 0.03' against the metrics in JSON_FILE.

    Takes the arguments of NeMo-RL's check_metrics.py. JSON_FILE may also be an event file, a directory of them
    or any other metrics file. Nothing in a check is executed: it is parsed over an allow-list. A NaN anywhere
    in a series that a check names fails it; a check that cannot fail is pointed out.

    Exit status: 0 all hold, 1 one does not, 2 wrong usage.
    """
    from proveout.cli.metric_input import read_metric_file
    from proveout.judge.expressions import check_all

    file = read_metric_file(json_file)
    outcomes = check_all(file.data, checks)
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        import msgspec

        document = {"passed": passed, "file": str(json_file), "checks": outcomes}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
    else:
        _table(outcomes, table_width)
        if explain:
            _explain(outcomes, file)
    return 0 if passed else 1


def _table(outcomes: tuple[Outcome, ...], width: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from proveout.judge.criteria.checks import row

    console = Console(width=width or 300)
    table = Table(title="Metric Checks", min_width=None if width else 220, width=width)
    for name, style in (("Status", "bold"), ("Check", "dim"), ("Value", "cyan"), ("Message", "italic")):
        table.add_column(name, style=style, overflow="fold")
    for outcome in outcomes:
        line = row(outcome)
        status = Text("PASS", style="green") if line.passed else Text("FAIL", style="red")
        table.add_row(status, Text(line.check), Text(line.value), Text(line.message))
    console.print(table)


def _explain(outcomes: tuple[Outcome, ...], file: MetricFile) -> None:
    from proveout.judge.expressions.data import View
    from proveout.judge.say import steps_text
    from proveout.judge.sparkline import bars_for, sparkline

    data, levels = file.data, bars_for(sys.stdout.encoding)
    for outcome in outcomes:
        sys.stdout.write(f"\n{'PASS' if outcome.passed else 'FAIL'}  {outcome.check}\n")
        for tag in outcome.series:
            view = data.get(tag)
            if not isinstance(view, View) or not len(view):
                continue
            series, steps = view.as_series(), list(outcome.offending.get(tag, ()))
            bars, marks = sparkline(series, steps, bars=levels)
            finite = [value for value in series.values if math.isfinite(value)]
            span = f"{min(finite)!r} to {max(finite)!r}" if finite else "no number"
            sys.stdout.write(
                f"  {tag}: {len(series)} values, {series.steps[0]} to {series.steps[-1]}, {span}\n"
            )
            sys.stdout.write(f"    {bars}\n" + (f"    {marks}\n" if marks else ""))
            if steps:
                sys.stdout.write(f"    offending: {steps_text(steps)}\n")
        for note in (*outcome.notes, *([f"cannot fail: {outcome.vacuous}"] if outcome.vacuous else [])):
            sys.stdout.write(f"  note: {note}\n")
