"""Which engines are here, and the site that a test gives to each pair of scheduler and launcher.

A pair whose engine is absent is skipped on a developer's machine; in CI (``CI=true``) it is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proveout.launch import LaunchSite


IMAGE = "localhost/proveout-test:bookworm"


def answers(*argv: str) -> bool:
    """Whether a program is here and says that its service runs."""
    if shutil.which(argv[0]) is None:
        return False
    done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def slurm() -> str:
    """Why Slurm cannot be used, or ''."""
    return "" if answers("scontrol", "ping") else "no Slurm controller answers (.ci/slurm starts one)"


def podman() -> str:
    """Why podman cannot be used, or ''."""
    os.environ.setdefault("CONTAINERS_CONF", str(Path(__file__).parents[2] / ".ci" / "containers.conf"))
    return "" if answers("podman", "image", "inspect", IMAGE) else f"no image {IMAGE} (.ci/podman makes it)"


def in_podman() -> LaunchSite:
    """Containers that share the host's process numbers, so that a test knows a process by its number."""
    return LaunchSite(image=IMAGE, tables={"container": {"engine": "podman", "extra": ("--pid=host",)}})


NEEDS: dict[str, Callable[[], str]] = {"slurm": slurm, "container": podman}
"""Scheduler or launcher -> why it cannot be used here, or ''."""
SITES: dict[str, Callable[[], LaunchSite]] = {"container": in_podman}
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
