"""What commands print of a run that goes on in the background."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.store.runs import Run

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.05


def go_on_detached(run: Run, arguments: Sequence[str], as_json: bool) -> int:
    """Hand ``run`` to a process of its own, wait until that has taken it up, and say how to follow it.

    Raises BlockedError where it ended at once.
    """
    import psutil

    from proveout.domain.errors import BlockedError
    from proveout.flow.detaching import detach, taken_up

    pid = detach(run, arguments)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not taken_up(run) and not run.finished and time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            raise BlockedError(
                "the background process ended at once",
                where=str(run.layout.driver_log),
                remedy="see that file",
            )
        time.sleep(POLL_SECONDS)
    if as_json:
        options.echo_json({"run": run.layout.id, "directory": str(run.layout.root), "process": pid})
    else:
        click.echo(f"run {run.layout.id} goes on in the background (process {pid})")
        click.echo(f"evidence in {run.layout.root}")
        click.echo(f"  proveout watch {run.layout.id}\n  proveout cancel {run.layout.id}")
    return 0
