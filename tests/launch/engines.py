"""Which engines are here, and the site that a test gives to each pair of scheduler and launcher.

A pair whose engine is absent is skipped on a developer's machine; in CI (``CI=true``) it is an error.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from proveout.launch import LaunchSite
from proveout.launch.ray import head

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


def ray_program() -> str:
    """The ``ray`` that tests use: PROVEOUT_TEST_RAY_PYTHON's, or the one beside this interpreter; '' without one."""
    python = os.environ.get("PROVEOUT_TEST_RAY_PYTHON") or sys.executable
    found = Path(python).with_name("ray")
    return str(found) if found.exists() else ""


def ray() -> str:
    """Why Ray cannot be used, or ''."""
    python = ray_program().removesuffix("ray") + "python"
    if not ray_program() or not answers(python, "-c", "import ray, aiohttp"):
        return "no ray[default] beside the interpreter that PROVEOUT_TEST_RAY_PYTHON names"
    return ""


@cache
def ray_address() -> str:
    """The Jobs API of a cluster that lives as long as this test process."""
    folder = Path(tempfile.mkdtemp(prefix="pvt-"))
    told = {
        "argv": [
            ray_program(),
            "start",
            "--head",
            "--port=0",
            "--num-cpus=4",
            "--disable-usage-stats",
        ],
        "address": str(folder / "address"),
        "place": str(folder / "place"),
        "logs": str(folder / "logs"),
        "exit": str(folder / "exit"),
        "process": str(folder / "head.json"),
        "start_seconds": 600,
        "temp": str(folder),
    }
    (folder / "head.json").write_text(json.dumps(told))
    with (folder / "log").open("wb") as log:
        holder = subprocess.Popen(
            [sys.executable, head.__file__, "run", str(folder / "head.json")],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    atexit.register(end_session, holder, folder)
    while not (folder / "address").exists():
        assert holder.poll() is None, (folder / "log").read_text()
        time.sleep(0.1)
    return (folder / "address").read_text()


def end_session(holder: subprocess.Popen[bytes], folder: Path) -> None:
    """End a process and everything that it started, which names ``folder`` in its command line."""
    mine = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
    ]
    for process in [*mine, holder]:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


NEEDS: dict[str, Callable[[], str]] = {"slurm": slurm, "container": podman, "ray": ray}
"""Scheduler or launcher -> why it cannot be used here, or ''."""
SITES: dict[str, Callable[[], LaunchSite]] = {"container": in_podman}
"""Launcher -> the settings that its tests need, where it needs any."""
TABLES: dict[str, Callable[[], dict[str, dict[str, Any]]]] = {
    "ray": lambda: {"ray": {"address": ray_address()}}
}
"""Scheduler -> the tables of [launch] that its tests need, where it needs any."""


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
    tables = site.tables | (TABLES[scheduler]() if scheduler in TABLES else {})
    return msgspec.structs.replace(site, scheduler=scheduler, launcher=launcher, tables=tables)
