"""``proveout history flaky``."""

from __future__ import annotations

import click

from proveout.cli import options
from proveout.cli.history_options import Asked, filters


@click.command("flaky")
@filters
@options.as_json
def command(asked: Asked, as_json: bool) -> int:
    """Steps that both passed and failed on the same code with the same command.

    The code is the commit and the difference of every checkout. Blocked and Incomplete say nothing of it and are
    left out. The exit status is 0 whatever is found.
    """
    import msgspec

    from proveout.store.history.flaky import flaky
    from proveout.store.history.queries import steps

    rows = steps(asked.index(), asked.filter)
    found = flaky(rows)
    if as_json:
        options.echo_json([msgspec.to_builtins(one) | {"failure_share": one.failure_share} for one in found])
        return 0
    for one in found:
        click.echo(
            f"{one.coverage} ({one.step}) on {one.change}: {one.verdicts.count('Fail')} of "
            f"{len(one.verdicts)} attempts failed" + (f": {', '.join(one.causes)}" if one.causes else "")
        )
        for run, verdict in zip(one.runs, one.verdicts, strict=True):
            click.echo(f"  {run}  {verdict}")
    if not found:
        click.echo(f"no flaky step in {len(rows)} steps of runs", err=True)
    return 0
