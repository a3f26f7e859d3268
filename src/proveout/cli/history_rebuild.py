"""``proveout history rebuild``."""

from __future__ import annotations

from pathlib import Path

import click

from proveout.cli import options
from proveout.cli.history_options import progress


@click.command("rebuild")
@options.state_dir
@options.as_json
def command(state_dir: Path | None, as_json: bool) -> int:
    """Read every run directory again, and forget runs whose directory is gone.

    A history file that is damaged is set aside first.
    """
    from proveout.flow.indexing import index_of, rebuild
    from proveout.store.history.queries import count
    from proveout.store.runs import runs_root

    root = runs_root(state_dir)
    unreadable = rebuild(root, progress)
    total = count(index_of(root))
    for sentence in unreadable:
        click.echo(f"proveout: {sentence}", err=True)
    if as_json:
        options.echo_json({"runs": total, "unreadable": unreadable})
    else:
        click.echo(f"{total} runs in {index_of(root).path}")
    return 0
