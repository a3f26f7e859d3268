"""A scheduler and a launcher together: what the flow starts attempts with."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.evidence import ExitRecord, LaunchRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Job, Launcher, Scheduler, Task
from proveout.launch.site import LaunchSite


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to start: its command, its directory and what it needs."""

    command: Command
    files: AttemptLayout
    resources: Resources


class Launch:
    """Starts attempts through one scheduler and one launcher, and finds them again by what each recorded."""

    def __init__(self, scheduler: Scheduler, launcher: Launcher, site: LaunchSite) -> None:
        """Raises UsageError where the two make no sense together or the settings lack something."""
        if scheduler.name not in launcher.schedulers:
            raise UsageError(
                f"launcher {launcher.name!r} cannot be used with scheduler {scheduler.name!r}",
                remedy=f"it goes with scheduler {' or '.join(launcher.schedulers)}",
            )
        scheduler.check(site)
        launcher.check(site)
        self.scheduler, self.launcher, self.site = scheduler, launcher, site
        self.name = f"{scheduler.name}+{launcher.name}"
        self._facts: dict[str, str] | None = None

    def submit(self, command: Command, files: AttemptLayout, resources: Resources) -> Job:
        """Start one attempt. Raises BlockedError where nothing can be started."""
        return self.submit_many([Start(command=command, files=files, resources=resources)])[0]

    def submit_many(self, starts: Sequence[Start]) -> list[Job]:
        """Start attempts, in one go where the scheduler can. Raises BlockedError where nothing can be started."""
        if self._facts is None:
            self._facts = self.launcher.facts(self.site)
        record = LaunchRecord(
            scheduler=self.scheduler.name, launcher=self.launcher.name, facts=dict(self._facts)
        )
        tasks = []
        for start in starts:
            wrapped = self.launcher.wrap(start.command, start.files, start.resources, self.site)
            tasks.append(Task(wrapped, start.files, start.resources, self.name, self.site))
            _note(start.files, record)
        return self.scheduler.submit(tasks)

    def reattach(self, files: AttemptLayout) -> Job | ExitRecord:
        """The job of an attempt that an earlier process started, by the scheduler that started it."""
        from proveout.launch import scheduler_of

        return scheduler_of(files, self.scheduler).reattach(files, self.site)

    def cancel(self, jobs: Sequence[Job]) -> list[ExitRecord]:
        """Stop all of these jobs with their children."""
        return self.scheduler.cancel(jobs)


def launch_record(files: AttemptLayout) -> LaunchRecord | None:
    """How an attempt was started; None where nothing says so."""
    try:
        return read_json(files.launch, LaunchRecord)
    except UsageError:
        return None


def add_facts(files: AttemptLayout, facts: dict[str, str]) -> None:
    """Say more of how an attempt was started."""
    record = launch_record(files)
    if record is not None:
        _note(files, msgspec.structs.replace(record, facts=record.facts | facts))


def _note(files: AttemptLayout, record: LaunchRecord) -> None:
    from proveout.domain.errors import BlockedError

    try:
        write_json(files.launch, record)
    except OSError as error:
        raise BlockedError(
            f"the attempt cannot be started: {error.strerror or error}", where=str(files.root)
        ) from error
