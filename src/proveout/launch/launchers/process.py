"""Launcher ``process``: the command as it is."""

from __future__ import annotations

from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch.base import Wrapped
from proveout.launch.site import LaunchSite


class ProcessLauncher:
    """Wraps nothing."""

    name = "process"
    schedulers = ("local", "slurm", "ray")

    def check(self, site: LaunchSite) -> None:
        """It needs nothing."""

    def wrap(self, command: Command, files: AttemptLayout, resources: Resources, site: LaunchSite) -> Wrapped:
        """The command itself."""
        return Wrapped(command=command)

    def facts(self, site: LaunchSite) -> dict[str, str]:
        """Nothing."""
        return {}


LAUNCHER = ProcessLauncher()
