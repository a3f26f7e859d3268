"""``proveout assets``: test assets, prepared once and reused by content."""

from __future__ import annotations

import os
from pathlib import Path

import click

from proveout.domain.errors import UsageError


@click.command(name="assets")
@click.option(
    "--repo", type=click.Path(path_type=Path), help="The checkout (default: $NEMO_RL_REPO, or here)."
)
@click.option("--script", type=click.Path(path_type=Path), help="What builds them, relative to the checkout.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Where they belong, relative to the checkout."
)
@click.option("--python", metavar="PATH", help="Run the script with this interpreter instead of uv run.")
@click.option(
    "--local",
    multiple=True,
    metavar="ORG/NAME=DIRECTORY",
    help="Take this model or tokenizer from a directory.",
)
@click.option("--rebuild", is_flag=True, help="Build them even where the cache has them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    repo: Path | None,
    script: Path | None,
    output: Path | None,
    python: str | None,
    local: tuple[str, ...],
    rebuild: bool,
    as_json: bool,
) -> int:
    """Prepare the assets that a checkout's unit tests need.

    The checkout's own script builds them, once for each content of what they are made from; later calls, in
    this checkout or another, reuse them. With --local nothing is fetched: the script finds the directory
    under its hub name, and the hub is offline to it.
    """
    from proveout.testaids.assets import OUTPUT, SCRIPT, Recipe, cache_directory, parse_local, prepare
    from proveout.testaids.checkout import find_checkout
    from proveout.testaids.environment import interpreter, uv

    root = find_checkout(repo)
    builder = root / (script or SCRIPT)
    if not builder.is_file():
        raise UsageError("no such script", where=str(builder), remedy="name it: --script PATH")
    recipe = Recipe(
        root=root,
        script=builder,
        output=root / (output or OUTPUT),
        environment=interpreter(python) if python else uv(),
        local=parse_local(local),
    )
    done = prepare(recipe, cache_directory(os.environ), rebuild=rebuild)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(done).decode())
    else:
        click.echo(f"{done.how}: {done.files} files in {done.directory} (content {done.content[:12]})")
    return 0
