"""The interfaces of the launch room: a scheduler allocates and starts, a launcher says how the command is wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from proveout.domain.evidence import ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.site import LaunchSite


class Job(Protocol):
    """One started attempt."""

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs."""
        ...

    def cancel(self) -> ExitRecord:
        """Stop it with all its children; returns when they are gone."""
        ...


class Wrapped(msgspec.Struct, frozen=True, kw_only=True):
    """A command as a launcher would have it started.

    ``cleanup`` is a command that takes away what outlives the wrapped one (a container whose client was killed);
    the supervisor runs it at the end, however that came. ``batch_options`` are options that the launcher needs of
    ``sbatch``. ``console`` is where the output of the wrapper itself goes when the log is another file, which
    ``log_link`` names (relative to the attempt directory; ``{job}`` stands for the scheduler's job number).
    ``end_file`` is where the wrapper writes how the command itself ended (relative to the attempt directory; its
    words are read by the supervisor); the wrapper's own exit status counts for nothing then.
    """

    command: Command
    cleanup: tuple[str, ...] = ()
    batch_options: tuple[str, ...] = ()
    console: str = ""
    log_link: str = ""
    end_file: str = ""


class Launcher(Protocol):
    """Wraps commands; holds no state."""

    name: str
    schedulers: tuple[str, ...]
    """The schedulers under which it makes sense."""

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError where the settings lack something that it needs."""
        ...

    def wrap(self, command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite) -> Wrapped:
        """The command to start instead. Raises UsageError or BlockedError where there can be none."""
        ...

    def facts(self, site: LaunchSite) -> dict[str, str]:
        """What a report should say of it: image, digest, limits."""
        ...


class Task:
    """One attempt that is to be started."""

    __slots__ = ("files", "launcher", "resources", "site", "wrapped")

    def __init__(
        self, wrapped: Wrapped, files: AttemptLayout, resources: Resources, launcher: str, site: LaunchSite
    ) -> None:
        self.wrapped, self.files, self.resources = wrapped, files, resources
        self.launcher, self.site = launcher, site


class Scheduler(Protocol):
    """Starts commands, and finds again what an earlier process of proveout started."""

    name: str

    def check(self, site: LaunchSite) -> None:
        """Raises UsageError where the settings are wrong for it."""
        ...

    def submit(self, tasks: Sequence[Task]) -> list[Job]:
        """Start every task, in one go where the engine can. Raises BlockedError where nothing can be started."""
        ...

    def reattach(self, files: AttemptLayout, site: LaunchSite) -> Job | ExitRecord:
        """The job of an attempt that an earlier process started: still running, or how it ended (LOST)."""
        ...

    def cancel(self, jobs: Sequence[Job]) -> list[ExitRecord]:
        """Stop all of them, in one go where the engine can; returns when they are gone."""
        ...
