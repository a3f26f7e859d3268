"""``proveout attach``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_options, site_of
from proveout.domain.checkout import ROLES
from proveout.domain.verdict import EXIT_STATUS, Verdict


@click.command("attach")
@click.argument("script", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--sees", multiple=True, metavar="PATH", help="It must see this. [the checkouts of the environment]"
)
@launch_options
@options.as_json
def command(script: Path, sees: tuple[str, ...], as_json: bool, **asked: Any) -> int:
    """Does an attach script of ray.sub (JOBID-attach.sh) still lead into a container that sees the checkouts?

    Exit status 0 when it does, 3 when it is stale; then a fresh step for the same allocation is printed.
    """
    from proveout.domain.errors import BlockedError
    from proveout.launch.launchers.attach import attached
    from proveout.launch.slurm.programs import UnreachableError

    paths = sees or tuple(os.environ[name] for name in ROLES.values() if os.environ.get(name))
    try:
        found = attached(script, site_of(asked), paths)
    except UnreachableError as error:
        raise BlockedError(f"Slurm does not answer: {error}") from error
    if as_json:
        options.echo_json(found)
    elif found.stale:
        click.echo(f"stale: {found.stale}")
        if found.fresh:
            click.echo(f"a fresh step in the same allocation:\n{found.fresh}")
    else:
        click.echo(f"job {found.job} is {found.state}, and its container sees what it must")
    return EXIT_STATUS[Verdict.BLOCKED if found.stale else Verdict.PASS]
