"""``proveout report``."""

from __future__ import annotations

from pathlib import Path

import click

from proveout.cli import options
from proveout.report import FORMATS, known_format


@click.command("report")
@click.argument("run", default="latest")
@click.option("--format", "form", default="text", show_default=True, help=f"One of {', '.join(FORMATS)}.")
@options.state_dir
@options.as_json
def command(run: str, form: str, state_dir: Path | None, as_json: bool) -> int:
    """Print the report of RUN (its name, a prefix, a path, or latest); the exit status is its verdict's."""
    from proveout.cli.show import show_report
    from proveout.flow.reporting import build
    from proveout.store.runs import find, runs_root

    known_format(form)
    return show_report(build(find(runs_root(state_dir), run)), "json" if as_json else form)
