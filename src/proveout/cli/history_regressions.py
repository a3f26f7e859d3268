"""``proveout history regressions``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.cli.history_options import Asked, filters
from proveout.cli.history_rule import rule as rule_options
from proveout.domain.verdict import EXIT_STATUS, Verdict

if TYPE_CHECKING:
    from proveout.store.history.regressions import Change
    from proveout.store.history.robust import Rule


@click.command("regressions")
@click.argument("tags", nargs=-1)
@rule_options
@click.option("--all", "show_all", is_flag=True, help="Show what is steady or undecided, too.")
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 on a regression, 3 if nothing was decided.")
@filters
@options.as_json
def command(
    tags: tuple[str, ...], rule: Rule, show_all: bool, fail_on_regression: bool, asked: Asked, as_json: bool
) -> int:
    """What moved in the newest run of every step: how long it took, and its metrics (TAGS, or all).

    The newest run is held against the median and the median absolute deviation of the good runs of the same step
    and model before it.
    """
    import msgspec

    from proveout.store.history.queries import metrics, steps
    from proveout.store.history.regressions import SECONDS, State, of_metrics, of_seconds, recent

    index = asked.index()
    wanted = msgspec.structs.replace(asked.filter, verdict="")
    of_steps = steps(index, wanted)
    found = of_seconds(of_steps, rule) if not tags or SECONDS in tags else []
    others = tuple(tag for tag in tags if tag != SECONDS)
    if others or not tags:
        found += of_metrics(metrics(index, wanted, others, recent(of_steps, rule)), rule)
    regressed = [one for one in found if one.state is State.REGRESSED]
    decided = [one for one in found if one.state is not State.UNDECIDED]
    verdict = Verdict.FAIL if regressed else Verdict.PASS if decided else Verdict.BLOCKED
    if as_json:
        options.echo_json({"verdict": verdict, "changes": found})
    else:
        moved = [one for one in found if one.state in (State.REGRESSED, State.IMPROVED)]
        for one in found if show_all else moved:
            _show(one)
        undecided = len(found) - len(decided)
        click.echo(f"{verdict}: {len(regressed)} regressed of {len(decided)} decided, {undecided} undecided")
    return EXIT_STATUS[verdict] if fail_on_regression else 0


def _show(one: Change) -> None:
    import math

    from proveout.domain.metrics import Series
    from proveout.judge.sparkline import bars_for, sparkline

    values = {place: math.nan if value is None else value for place, value in enumerate(one.values)}
    bars, _ = sparkline(Series.of(values), bars=bars_for(sys.stdout.encoding))
    click.echo(f"{one.state}: {one.coverage}, {one.model}, {one.tag}  {bars}")
    between = f"in {one.run}" + (f"; the newest good run before it is {one.before}" if one.before else "")
    click.echo(f"  {one.reason + '; ' if one.reason else ''}{between}")
