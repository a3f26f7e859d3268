"""Launch: a scheduler (who allocates) starts a command, and says truly how it ended.

A new scheduler is one file and one line here.
"""

from __future__ import annotations

from importlib import import_module

from proveout.domain.errors import UsageError, nearest
from proveout.launch.base import Job, Scheduler

SCHEDULERS: dict[str, str] = {
    "local": "proveout.launch.local",
}

__all__ = ["SCHEDULERS", "Job", "Scheduler", "scheduler"]


def scheduler(name: str) -> Scheduler:
    """The scheduler of this name. Raises UsageError that names the nearest known one."""
    if name not in SCHEDULERS:
        raise UsageError(f"no scheduler {name!r}{nearest(name, SCHEDULERS)}")
    found: Scheduler = import_module(SCHEDULERS[name]).SCHEDULER
    return found
