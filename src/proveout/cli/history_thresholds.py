"""``proveout history thresholds``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.cli.history_options import Asked, filters
from proveout.cli.history_rule import rule as rule_options

if TYPE_CHECKING:
    from proveout.store.history.robust import Rule


@click.command("thresholds")
@click.argument("tags", nargs=-1)
@rule_options
@filters
@options.as_json
def command(tags: tuple[str, ...], rule: Rule, asked: Asked, as_json: bool) -> int:
    """Metric checks for TAGS (all by default) that the last good runs suggest, with their spread.

    They are printed and put nowhere: a threshold is a decision. Series of the machine are left out unless a tag
    names them, since they belong to one machine.
    """
    import msgspec

    from proveout.store.history.queries import metrics, steps
    from proveout.store.history.regressions import recent
    from proveout.store.history.thresholds import suggest

    wanted = msgspec.structs.replace(asked.filter, verdict="Pass")
    index = asked.index()
    counted = recent(steps(index, wanted), rule)
    rows = [row for row in metrics(index, wanted, tags, counted) if tags or not row.machine]
    found = suggest(rows, rule)
    if as_json:
        options.echo_json(found)
        return 0
    for one in found:
        click.echo(f"{one.coverage}, {one.model}: {one.check or f'{one.tag}: none, {one.reason}'}")
        if one.spread is not None:
            seen = one.spread
            click.echo(
                f"  {one.statistic} of {seen.runs} good runs: median {seen.median:.6g}, robust deviation "
                f"{seen.sigma:.3g}, {seen.low:.6g} to {seen.high:.6g}"
            )
    if not found:
        click.echo("no good run that fits holds such a metric", err=True)
    return 0
