"""Scheduler ``slurm``: batch jobs under a supervisor, followed by their exit files and by Slurm's own word."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from proveout.domain.errors import BlockedError, ProveoutError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.launch.base import Job, Task
from proveout.launch.files import lost
from proveout.launch.site import LaunchSite
from proveout.launch.slurm import query
from proveout.launch.slurm.programs import UnreachableError, slurm
from proveout.launch.slurm.queue import QUEUE
from proveout.launch.slurm.reconcile import reconcile
from proveout.launch.slurm.script import minutes
from proveout.launch.slurm.settings import SlurmSettings
from proveout.launch.slurm.states import JobState
from proveout.launch.slurm.submit import Submitted, number_path, record_path, submit, supervisor_record

FILE_SECONDS = 20.0
SILENT_SECONDS = 90.0
ASK_SECONDS = 9.0
CANCEL_SECONDS = 30.0
CANCEL_MARK = "cancelled"


class SlurmJob:
    """An attempt in Slurm: a job, or a task of an array."""

    def __init__(self, files: AttemptLayout, record: Submitted, number: str, launcher: str) -> None:
        self.id, self.files = record.job(number), files
        self._log, self._launcher = record.log(number), launcher
        self._since: dict[str, float] = {}
        QUEUE.watch(self.id)

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs or waits; cheap, as all jobs share one question to Slurm."""
        if self.files.exit.exists():
            return read_json(self.files.exit, ExitRecord)
        said = self._said()
        state = QUEUE.state(self.id, now=said is not None)
        return self._settled(said, state) if self._decided(said, state) else None

    def cancel(self) -> ExitRecord:
        """Stop it with everything that it started."""
        return cancel([self])[0]

    def mark(self) -> None:
        """Note that it is proveout that cancels the job."""
        (self.files.root / CANCEL_MARK).touch()

    @property
    def state(self) -> JobState | None:
        """What Slurm said last."""
        return QUEUE.state(self.id)

    def _said(self) -> ExitRecord | None:
        path = supervisor_record(self.files)
        if not path.exists():
            return None
        with suppress(ProveoutError):
            return read_json(path, ExitRecord)
        return None

    def _decided(self, said: ExitRecord | None, state: JobState | None) -> bool:
        """Whether enough is known. A file system may show a file late; Slurm may be silent, or slow to clean up."""
        if state is not None and state.restarts:
            return True
        if state is not None and (state.terminal or not state.known):
            asked = (self.files.root / CANCEL_MARK).exists()
            wanting = (
                said is None and not asked and not state.signal and state.state in ("COMPLETED", "FAILED", "")
            )
            return not wanting or self._waited("file", FILE_SECONDS)
        return said is not None and self._waited("slurm", SILENT_SECONDS)

    def _waited(self, what: str, seconds: float) -> bool:
        return time.monotonic() - self._since.setdefault(what, time.monotonic()) >= seconds

    def _settled(self, said: ExitRecord | None, state: JobState | None) -> ExitRecord:
        if state is not None and state.restarts and not state.terminal:
            _scancel([self])
        final = state is not None and (state.terminal or not state.known or state.restarts)
        record = reconcile(
            said,
            state if state is not None and final else _silent(self.id),
            launcher=self._launcher,
            started=self.files.process.exists(),
            asked=(self.files.root / CANCEL_MARK).exists(),
            log=str(self._log),
        )
        write_json(self.files.exit, record)
        QUEUE.forget(self.id)
        return record


class SlurmScheduler:
    """Starts attempts as jobs of the cluster of this login node."""

    name = "slurm"

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError where a setting cannot be read."""
        settings = site.table("slurm", SlurmSettings)
        if settings.time:
            minutes(settings.time)

    def submit(self, tasks: Sequence[Task]) -> list[Job]:
        """Submit all tasks, those that ask for the same as one array. Raises BlockedError where Slurm refuses."""
        submit(tasks)
        return [_job(task.files, task.launcher) for task in tasks]

    def reattach(self, files: AttemptLayout, site: LaunchSite) -> Job | ExitRecord:
        """The job of an attempt of an earlier proveout, by the record that was written before it was submitted."""
        if files.exit.exists():
            return read_json(files.exit, ExitRecord)
        if not record_path(files).exists():
            return lost(files, "proveout died before it was submitted")
        try:
            return _job(files, f"slurm+{site.launcher}")
        except BlockedError as error:
            return lost(files, error.what)

    def cancel(self, jobs: Sequence[Job]) -> list[ExitRecord]:
        """Cancel all of them in one call."""
        return cancel([job for job in jobs if isinstance(job, SlurmJob)])


def cancel(jobs: Sequence[SlurmJob]) -> list[ExitRecord]:
    """Cancel jobs and wait until they are gone; what does not obey is killed after some seconds."""
    left = [job for job in jobs if job.poll() is None]
    for job in left:
        job.mark()
    _scancel(left)
    began, killed = time.monotonic(), False
    while left := [job for job in left if job.poll() is None]:
        waited = time.monotonic() - began
        if waited > ASK_SECONDS and not killed:
            killed = True
            _scancel(left, "--signal=KILL", "--full")
        if waited > CANCEL_SECONDS:
            break
        time.sleep(0.1)
    return [job.poll() or _unconfirmed(job) for job in jobs]


def _scancel(jobs: Sequence[SlurmJob], *options: str) -> None:
    if jobs:
        with suppress(BlockedError, UnreachableError):
            slurm(("scancel", "--quiet", *options, *(job.id for job in jobs)))


def _unconfirmed(job: SlurmJob) -> ExitRecord:
    return ExitRecord(
        end=End.INTERRUPTED,
        detail=f"Slurm job {job.id} was cancelled; Slurm has not confirmed its end ({QUEUE.trouble or 'yet'})",
        started=job.files.root.stat().st_mtime,
        finished=time.time(),
    )


def _job(files: AttemptLayout, launcher: str) -> SlurmJob:
    """The job of an attempt. Raises BlockedError where it was never submitted."""
    record = read_json(record_path(files), Submitted)
    path = number_path(record.folder)
    number = str(read_json(path, dict[str, str])["job"]) if path.exists() else ""
    if not number:
        try:
            number = query.find(record.name)
        except UnreachableError as error:
            raise BlockedError(f"Slurm does not answer: {error}") from error
        if not number:
            raise BlockedError("proveout died before it was submitted")
        write_json(path, {"job": number})
    return SlurmJob(files, record, number, launcher)


def _silent(job: str) -> JobState:
    """For a job of which only the exit file is known."""
    return JobState(id=job, state="", known=False)


SCHEDULER = SlurmScheduler()
