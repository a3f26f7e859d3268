"""Hands a run to a process of its own, which outlives this one and its terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from proveout.domain.errors import BlockedError
from proveout.flow.driving import driver_of
from proveout.store.runs import Run


def detach(run: Run, arguments: Sequence[str] = ()) -> int:
    """Go on with ``run`` in the background; its console is ``driver.log`` of the run. The process's number.

    Raises BlockedError where it cannot be started.
    """
    try:
        with run.layout.driver_log.open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "proveout", "resume", str(run.layout.root), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise BlockedError(
            f"the run cannot go on in the background: {error.strerror or error}",
            where=str(run.layout.driver_log),
        ) from error
    return started.pid


def taken_up(run: Run) -> bool:
    """Whether a driver has taken the run up."""
    return driver_of(run) is not None
