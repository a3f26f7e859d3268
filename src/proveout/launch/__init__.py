"""Launch: a scheduler (who allocates) and a launcher (how the command is wrapped) start it, and say how it ended.

A new scheduler or launcher is one file and one line here.
"""

from __future__ import annotations

from importlib import import_module

from proveout.domain.errors import UsageError, nearest
from proveout.domain.layout import AttemptLayout
from proveout.launch.base import Job, Launcher, Scheduler, Wrapped
from proveout.launch.launching import Launch, Start, launch_record
from proveout.launch.site import LaunchSite

SCHEDULERS: dict[str, str] = {
    "local": "proveout.launch.local",
    "ray": "proveout.launch.ray.scheduler",
    "slurm": "proveout.launch.slurm.scheduler",
}
LAUNCHERS: dict[str, str] = {
    "process": "proveout.launch.launchers.process",
    "srun": "proveout.launch.launchers.srun",
    "ray.sub": "proveout.launch.launchers.ray_sub",
    "container": "proveout.launch.launchers.container",
}

__all__ = [
    "LAUNCHERS",
    "SCHEDULERS",
    "Job",
    "Launch",
    "LaunchSite",
    "Launcher",
    "Scheduler",
    "Start",
    "Wrapped",
    "launch_for",
    "launch_record",
    "launcher",
    "pairs",
    "scheduler",
    "scheduler_of",
]


def launch_for(site: LaunchSite | None = None) -> Launch:
    """What starts attempts at this site. Raises UsageError for names and combinations that make no sense."""
    site = site or LaunchSite()
    return Launch(scheduler(site.scheduler), launcher(site.launcher), site)


def scheduler(name: str) -> Scheduler:
    """The scheduler of this name. Raises UsageError that names the nearest known one."""
    if name not in SCHEDULERS:
        raise UsageError(f"no scheduler {name!r}{nearest(name, SCHEDULERS)}")
    found: Scheduler = import_module(SCHEDULERS[name]).SCHEDULER
    return found


def launcher(name: str) -> Launcher:
    """The launcher of this name. Raises UsageError that names the nearest known one."""
    if name not in LAUNCHERS:
        raise UsageError(f"no launcher {name!r}{nearest(name, LAUNCHERS)}")
    found: Launcher = import_module(LAUNCHERS[name]).LAUNCHER
    return found


def pairs() -> list[tuple[str, str]]:
    """Every scheduler with every launcher that goes with it."""
    return [(s, name) for name in LAUNCHERS for s in launcher(name).schedulers if s in SCHEDULERS]


def scheduler_of(files: AttemptLayout, default: Scheduler) -> Scheduler:
    """The scheduler that started an attempt, as its directory says; ``default`` where it does not."""
    record = launch_record(files)
    return scheduler(record.scheduler) if record is not None else default
