"""Scheduler ``local``: a process on this machine, under a supervisor that outlives proveout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec
import psutil

from proveout.domain import redact
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import ExitRecord
from proveout.domain.files import read_json, write_atomic, write_json
from proveout.domain.layout import AttemptLayout
from proveout.launch import supervise
from proveout.launch.base import Job, Task
from proveout.launch.files import clean_up, environment, lost, script, spec
from proveout.launch.site import LaunchSite

CANCEL_SECONDS = 10.0
STARTING_SECONDS = 5.0


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which process supervises an attempt; ``start_ticks`` tells it from a later one of the same number."""

    pid: int
    start_ticks: int


class LocalJob:
    """An attempt under its supervisor."""

    def __init__(self, files: AttemptLayout, pid: int) -> None:
        self._files, self._pid = files, pid

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs; LOST when the supervisor died without a record."""
        if self._files.exit.exists():
            return read_json(self._files.exit, ExitRecord)
        if _alive(self._pid):
            return None
        if self._files.exit.exists():
            return read_json(self._files.exit, ExitRecord)
        return _lost(self._files, "its supervisor died")

    def ask(self) -> None:
        """Ask the supervisor to stop, and do not wait."""
        if self.poll() is None:
            _signal(self._pid, signal.SIGTERM)

    def cancel(self) -> ExitRecord:
        """Ask the supervisor to stop the command and everything below it; kill what does not obey."""
        record = self.poll()
        deadline = time.monotonic() + CANCEL_SECONDS
        tree = _tree(self._pid) if record is None else []
        while record is None and time.monotonic() < deadline:
            _signal(self._pid, signal.SIGTERM)
            time.sleep(0.05)
            record = self.poll()
        for process in tree:
            if record is None or process.is_running():
                _kill(process)
        return record or _lost(self._files, "its supervisor did not stop and was killed")


class LocalScheduler:
    """Starts attempts as processes of this machine."""

    name = "local"

    def check(self, site: LaunchSite) -> None:
        """It needs nothing."""

    def submit(self, tasks: Sequence[Task]) -> list[Job]:
        """Start each command with its log in ``run.log``; raises BlockedError where that is not possible."""
        return [self._start(task) for task in tasks]

    def _start(self, task: Task) -> Job:
        command, files = task.wrapped.command, task.files
        env = environment(command)
        try:
            write_atomic(files.command, script(command))
            write_json(files.env, redact.environment(env))
            write_json(files.job, spec(task))
            started = subprocess.Popen(
                [sys.executable, "-I", supervise.__file__, str(files.job)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise BlockedError(
                f"the attempt cannot be started: {error.strerror or error}", where=str(files.root)
            ) from error
        return LocalJob(files, started.pid)

    def reattach(self, files: AttemptLayout, site: LaunchSite) -> Job | ExitRecord:
        """The job that an earlier proveout started here, or how it ended."""
        if files.exit.exists():
            return read_json(files.exit, ExitRecord)
        if not files.process.exists():
            return lost(files, "proveout died before it started")
        record = read_json(files.process, ProcessRecord)
        if _alive(record.pid) and supervise.start_ticks(record.pid) == record.start_ticks:
            return LocalJob(files, record.pid)
        if files.exit.exists():
            return read_json(files.exit, ExitRecord)
        return _lost(files, "its supervisor died")

    def cancel(self, jobs: Sequence[Job]) -> list[ExitRecord]:
        """Ask all to stop before waiting for any."""
        for job in jobs:
            if isinstance(job, LocalJob):
                job.ask()
        return [job.cancel() for job in jobs]


def _lost(files: AttemptLayout, detail: str) -> ExitRecord:
    clean_up(files)
    return lost(files, detail)


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


SCHEDULER = LocalScheduler()
