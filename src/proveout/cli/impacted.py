"""``proveout impacted``: which test files a change can reach, without importing the project or running pytest."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("impacted")
@click.option(
    "--base", metavar="REV", help="Changes since this commit; without it, since each test last passed."
)
@click.option(
    "--root",
    "start",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="A directory of the repository (default: the current one).",
)
@click.option(
    "--explain", metavar="TEST", help="Say why one test file or node id runs, with its import chain."
)
@click.option("--rebuild", is_flag=True, help="Forget outcomes and the dependency graph first.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print changed, selected [{test, because}] and all as JSON."
)
def command(base: str | None, start: Path, explain: str | None, rebuild: bool, as_json: bool) -> int:
    """List the test files that a change can reach.

    Exit status 0, also when nothing is selected; 2 when the base is no commit of the repository.
    """
    from proveout.pytest_plugin.impacted import listing

    if rebuild:
        listing.rebuild(start)
    if explain is not None:
        click.echo(listing.explanation(start, explain, base))
        return 0
    found = listing.listing(start, base)
    click.echo(listing.as_json(found) if as_json else listing.as_text(found))
    return 0
