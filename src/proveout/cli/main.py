"""Entry point: a group that imports a command's module only when that command is called.

Every command module holds ``command``, a click command whose return value is the exit status (None is 0).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from proveout import __version__
from proveout.cli.commands import COMMANDS
from proveout.domain.errors import BlockedError, ProveoutError, nearest
from proveout.domain.verdict import EXIT_STATUS, EXIT_USAGE, Verdict

WITHOUT_SETTINGS = frozenset({"init", "skill"})


class LazyGroup(click.Group):
    """Lists commands from the table; imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise click.UsageError(f"no command {args[0]!r}{nearest(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(cls=LazyGroup, name="proveout")
@click.version_option(__version__, prog_name="proveout")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Run a change to an RL post-training stack inside real RL loops and judge it from evidence.

    Exit status: 0 Pass, 1 Fail, 2 wrong usage or configuration, 3 Blocked, 4 incomplete or interrupted.
    """
    name = ctx.invoked_subcommand
    if name is not None and name not in WITHOUT_SETTINGS and Path("proveout.toml").is_file():
        from proveout.cli.settings import defaults

        ctx.default_map = defaults(Path.cwd(), name, ctx)


def main() -> None:
    """Run the command line and exit with its status; what the user can act on is one sentence on stderr."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit status of ``proveout ARGUMENTS``."""
    try:
        result = root.main(args=arguments, prog_name="proveout", standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        _say(error.format_message(), remedy=f"see '{context.command_path if context else 'proveout'} --help'")
        return EXIT_USAGE
    except ProveoutError as error:
        _say(str(error), remedy=error.remedy)
        return EXIT_STATUS[Verdict.BLOCKED] if isinstance(error, BlockedError) else EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return EXIT_STATUS[Verdict.INCOMPLETE]
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_STATUS[Verdict.INCOMPLETE]
    return result if isinstance(result, int) else 0


def _say(what: str, remedy: str = "") -> None:
    sys.stderr.write(f"proveout: {what}\n" + (f"  {remedy}\n" if remedy else ""))
