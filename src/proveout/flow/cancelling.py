"""Stops a whole run, whoever drives it, and leaves it judged."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from proveout.domain.errors import BlockedError
from proveout.domain.evidence import ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.report import Report
from proveout.domain.step import Step
from proveout.flow.attempt import conclude
from proveout.flow.driving import Pulse, driver_of, request_cancel
from proveout.flow.evidence import related_to
from proveout.flow.prove import write_reports
from proveout.flow.provenance import imports_of
from proveout.flow.reporting import build
from proveout.launch import Job, Launch
from proveout.store.runs import Run

PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.1


def cancel(run: Run, launch: Launch) -> Report:
    """Stop every attempt of ``run`` with all that it started; what was stopped is Incomplete.

    A living driver does it. Where there is none any more, this process does. A run that has ended stays as it is.

    Raises:
        BlockedError: the run directory cannot be written, or a driver on another machine does not react.
    """
    try:
        request_cancel(run)
    except OSError as error:
        raise BlockedError(
            f"the run directory cannot be written: {error.strerror or error}", where=str(run.layout.root)
        ) from error
    driver, pulse = driver_of(run), Pulse(run)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while pulse.beats() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if pulse.beats():
        if driver is None or not driver.here:
            raise BlockedError(
                f"its driver on {driver.host if driver else 'another machine'} does not react",
                where=run.layout.id,
                remedy="stop it there",
            )
        with contextlib.suppress(ProcessLookupError):
            os.kill(driver.pid, signal.SIGKILL)
        while run.active and time.monotonic() < deadline + PATIENCE_SECONDS:
            time.sleep(POLL_SECONDS)
    with run.held():
        run.layout.cancel.unlink(missing_ok=True)
        run.layout.driver.unlink(missing_ok=True)
        if not _stop_what_is_left(run, launch):
            return build(run)
        run.journal.append("interrupted")
        return write_reports(run)


def _stop_what_is_left(run: Run, launch: Launch) -> bool:
    """Stop and judge the attempts that nobody drives any more; whether there were any."""
    steps = {step.id: step for step in run.plan.steps}
    left = [(n, steps[step], files) for n, step, files in run.attempts() if not files.result.exists()]
    running: list[tuple[int, Step, AttemptLayout, Job]] = []
    for number, step, files in left:
        if not files.root.is_dir():
            continue
        found = launch.reattach(files)
        if isinstance(found, ExitRecord):
            _judge(run, steps, (number, step, files), found)
        else:
            running.append((number, step, files, found))
    ended = launch.cancel([job for *_, job in running])
    for (number, step, files, _), record in zip(running, ended, strict=True):
        _judge(run, steps, (number, step, files), record)
    return bool(left)


def _judge(
    run: Run, steps: dict[str, Step], attempt: tuple[int, Step, AttemptLayout], record: ExitRecord
) -> None:
    number, step, files = attempt
    related = related_to(step, run, steps)
    result = conclude(step, number, files, record, related, imports=imports_of(run, step))
    run.journal.append("attempt_judged", number=number, step=step.id, verdict=result.verdict)
