"""``proveout history``: what happened before. Without a subcommand it lists runs."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.cli.history_options import Asked, filters
from proveout.domain.errors import nearest

if TYPE_CHECKING:
    from proveout.store.history.records import RunRow

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "metric": ("proveout.cli.history_metric", "One metric over runs."),
    "regressions": ("proveout.cli.history_regressions", "What moved in the newest runs."),
    "flaky": ("proveout.cli.history_flaky", "Steps that both passed and failed on the same code."),
    "thresholds": ("proveout.cli.history_thresholds", "Checks that good runs suggest; none is put anywhere."),
    "export": ("proveout.cli.history_export", "The history as CSV or Parquet."),
    "rebuild": ("proveout.cli.history_rebuild", "Read every run directory again."),
    "tests": ("proveout.cli.history_tests", "Trends and regressions of metrics that unit tests track."),
}


class _Group(click.Group):
    """Lists subcommands from the table; imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = import_module(SUBCOMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in SUBCOMMANDS:
            raise click.UsageError(f"no history {args[0]!r}{nearest(args[0], SUBCOMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in SUBCOMMANDS.items()])


@click.command(cls=_Group, name="history", invoke_without_command=True)
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(0), help="Newest runs shown; 0 for all."
)
@filters
@options.as_json
@click.pass_context
def command(ctx: click.Context, limit: int, asked: Asked, as_json: bool) -> int:
    """What happened before: runs, newest first.

    The history indexes the run directories of this place. It takes in what it lacks each time it is asked, keeps
    runs whose directory was removed until it is rebuilt, and can be deleted at any time.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from proveout.store.history.queries import count, runs

    index = asked.index()
    found = runs(index, asked.filter, limit)
    if as_json:
        options.echo_json([_as_data(row) for row in found])
        return 0
    _show(found)
    total = count(index)
    if not found:
        click.echo(f"none of {total} runs fits" if total else f"no runs in {asked.root}", err=True)
    elif len(found) < total:
        click.echo(f"{len(found)} of {total} runs; --limit 0 shows all that fit", err=True)
    return 0


def _as_data(row: RunRow) -> dict[str, object]:
    import msgspec

    data: dict[str, object] = msgspec.to_builtins(row)
    return data | {"present": Path(row.directory).is_dir()}


def _show(rows: list[RunRow]) -> None:
    for row in rows:
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.started))
        parts = [row.id, started, row.verdict, ", ".join(row.coverage), row.model, row.change]
        gone = "" if Path(row.directory).is_dir() else "  (directory removed)"
        click.echo("  ".join(part for part in parts if part) + gone)
