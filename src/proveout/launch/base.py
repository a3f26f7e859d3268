"""The two small interfaces of the launch room."""

from __future__ import annotations

from typing import Protocol

from proveout.domain.evidence import ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources


class Job(Protocol):
    """One started attempt."""

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs."""
        ...

    def cancel(self) -> ExitRecord:
        """Stop it with all its children; returns when they are gone."""
        ...


class Scheduler(Protocol):
    """Starts commands, and finds again what an earlier process of proveout started."""

    name: str

    def submit(self, command: Command, files: AttemptLayout, resources: Resources) -> Job:
        """Start ``command`` for one attempt. Raises BlockedError where nothing can be started."""
        ...

    def reattach(self, files: AttemptLayout) -> Job | ExitRecord:
        """The job of an attempt that an earlier process started: still running, or how it ended (LOST)."""
        ...
