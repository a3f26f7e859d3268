"""``proveout report``."""

from __future__ import annotations

from pathlib import Path

import click

from proveout.cli import options
from proveout.report import FORMATS, known_format


@click.command("report")
@click.argument("run", default="latest")
@click.option("--format", "form", default="text", show_default=True, help=f"One of {', '.join(FORMATS)}.")
@click.option("--baseline", metavar="RUN", help="Another run to show beside it: plots and configuration.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, not to standard output.",
)
@click.option(
    "--redact/--no-redact",
    "redacted",
    default=True,
    show_default=True,
    help="Hide tokens, keys, home directories, hosts, e-mail addresses and user names.",
)
@options.state_dir
@options.as_json
def command(
    run: str,
    form: str,
    baseline: str | None,
    output: Path | None,
    redacted: bool,
    state_dir: Path | None,
    as_json: bool,
) -> int:
    """Print the report of RUN (its name, a prefix, a path, or latest); the exit status is its verdict's."""
    from proveout.cli.show import show_report
    from proveout.flow.reporting import build
    from proveout.store.runs import find, runs_root

    form = "json" if as_json else known_format(form)
    root = runs_root(state_dir)
    other = find(root, baseline) if baseline is not None else None
    return show_report(build(find(root, run), other), form, redacted=redacted, output=output)
