"""``proveout history``: what happened before, by kind of history."""

from __future__ import annotations

from importlib import import_module

import click

from proveout.domain.errors import nearest

SUBCOMMANDS: dict[str, tuple[str, str]] = {
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


@click.command(cls=_Group, name="history")
def command() -> None:
    """What happened before: trends and regressions."""
