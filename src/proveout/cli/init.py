"""``proveout init``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from proveout.cli import options
from proveout.domain.checkout import ROLES


@click.command("init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--ci", callback=options.words, help="github, gitlab or none. [what this checkout uses]")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--dry-run", is_flag=True, help="Print the files and write nothing.")
@options.as_json
def command(folder: Path, ci: tuple[str, ...], force: bool, dry_run: bool, as_json: bool) -> int:
    """Write proveout.toml and a CI workflow into FOLDER, the root of a checkout.

    What the tree is, where the other trees are (environment variables, or beside this one) and which CI it uses are
    found out. Paths of other trees are written as comments, since they belong to this machine. Nothing that is there
    is replaced without --force, and either all files are written or none.
    """
    from proveout.plan.setup import contents, look, write

    folder = folder.resolve()
    found = look(folder, os.environ)
    wanted = contents(found, tuple(name for name in ci or found.ci if name != "none"))
    if dry_run:
        if as_json:
            options.echo_json({"role": found.role, "files": wanted})
        else:
            click.echo("\n".join(f"# {name}\n{content}" for name, content in wanted.items()), nl=False)
        return 0
    states = write(folder, wanted, force=force)
    if as_json:
        options.echo_json({"role": found.role, "files": states})
        return 0
    for name, state in states.items():
        click.echo(f"{state}: {name}")
    for role, (path, why) in found.checkouts.items():
        aside = "" if role == found.role else f"; take it in there, or set {ROLES[role]}"
        click.echo(f"{role}: {path} ({why}{aside})")
    for role, paths in found.unsure.items():
        click.echo(f"{role}: one of {', '.join(paths)}; choose in proveout.toml")
    if ".gitlab/proveout.yml" in states:
        click.echo("include .gitlab/proveout.yml from .gitlab-ci.yml, as its first lines say")
    return 0
