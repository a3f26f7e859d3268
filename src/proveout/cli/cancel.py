"""``proveout cancel``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_of, launch_options


@click.command("cancel")
@click.argument("run", default="latest")
@launch_options
@options.state_dir
@options.as_json
def command(run: str, state_dir: Path | None, as_json: bool, **asked: Any) -> int:
    """Stop RUN (its name, a prefix, a path, or latest): every attempt with all that it started.

    Whoever drives the run is asked; where nobody does any more, the attempts are stopped from here. What was stopped
    is Incomplete, and 'proveout resume' starts it again. A run that has ended is left as it is.

    Exit status: that of the run's verdict as it then stands (4 where something was stopped).
    """
    from proveout.cli.show import show_report
    from proveout.flow.cancelling import cancel
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    report = cancel(found, launch_of(asked, found.launch_site()))
    return show_report(report, "json" if as_json else "text")
