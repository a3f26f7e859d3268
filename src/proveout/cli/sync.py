"""``proveout sync``."""

from __future__ import annotations

import shlex
from typing import Any

import click

from proveout.cli import options
from proveout.cli.request import located
from proveout.domain.errors import UsageError


@click.command("sync")
@click.argument("place", metavar="HOST:DIR")
@click.option("--bridge", help="Megatron-Bridge checkout. [$BRIDGE_REPO]")
@click.option("--mcore", help="Megatron-Core checkout. [$MCORE_REPO]")
@click.option("--nemo-rl", help="NeMo-RL checkout. [$NEMO_RL_REPO]")
@click.option("--verl", help="verl checkout. [$VERL_REPO]")
@click.option("--ssh", default="", metavar="COMMAND", help="How to connect, as 'ssh -p 2222'. [ssh]")
@options.as_json
def command(place: str, ssh: str, as_json: bool, **asked: Any) -> int:
    """Copy the checkouts exactly as they are (commit, changes, untracked files) into a fresh directory below HOST:DIR.

    Every file is compared there by its hash. Nothing that exists is touched, here or there; ignored files stay here.
    """
    from proveout.launch.sync import place_of, sync

    checkouts = located(asked)
    if not checkouts:
        raise UsageError(
            "there is no checkout to copy", remedy="give --bridge, --nemo-rl, --verl or --mcore PATH"
        )
    where = place_of(place, ssh)
    directory, synced = sync(checkouts, where)
    if as_json:
        options.echo_json({"host": where.host, "directory": directory, "checkouts": synced})
        return 0
    for one in synced:
        commit = one.commit[:9] or "no commit"
        click.echo(
            f"{one.role}: {one.files} files at {commit}, tree {one.tree[:16]}, the same in {one.remote}"
        )
    words = ["proveout", "run", "--detach"]
    words += [word for one in synced for word in (f"--{one.role}", one.remote)]
    click.echo(f"\nThere:\n  cd {shlex.quote(directory)} && {shlex.join(words)}")
    return 0
