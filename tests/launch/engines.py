"""Which engines are here, and the site that a test gives to each pair of scheduler and launcher.

A pair whose engine is absent is skipped on a developer's machine; in CI (``CI=true``) it is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from proveout.launch import LaunchSite


def answers(*argv: str) -> bool:
    """Whether a program is here and says that its service runs."""
    if shutil.which(argv[0]) is None:
        return False
    done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def slurm() -> str:
    """Why Slurm cannot be used, or ''."""
    return "" if answers("scontrol", "ping") else "no Slurm controller answers (.ci/slurm starts one)"


NEEDS: dict[str, Callable[[], str]] = {"slurm": slurm}
"""Scheduler or launcher -> why it cannot be used here, or ''."""
SITES: dict[str, Callable[[], LaunchSite]] = {}
"""Launcher -> the settings that its tests need, where it needs any."""


def require(*names: str) -> None:
    """Skip where an engine is absent; an error in CI."""
    for name in names:
        reason = NEEDS[name]() if name in NEEDS else ""
        if reason and os.environ.get("CI") == "true":
            pytest.fail(f"{name}: {reason}")
        elif reason:
            pytest.skip(f"{name}: {reason}")


def site_for(scheduler: str, launcher: str) -> LaunchSite:
    """The settings for one pair."""
    import msgspec

    site = SITES[launcher]() if launcher in SITES else LaunchSite()
    return msgspec.structs.replace(site, scheduler=scheduler, launcher=launcher)
