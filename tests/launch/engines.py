"""Which engines are here, and the site that a test gives to each pair of scheduler and launcher.

A pair whose engine is absent is skipped on a developer's machine; in CI (``CI=true``) it is an error.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from proveout.launch import LaunchSite, supervise
from proveout.launch.ray import head

PR_SET_PDEATHSIG = 1
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


def through_standins() -> LaunchSite:
    """pyxis and Ray are not in the tests' Slurm: stand-ins keep their interfaces and use the real srun."""
    standins = Path(__file__).parent / "standins"
    if str(standins) not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = f"{standins}{os.pathsep}{os.environ['PATH']}"
    return LaunchSite(image="stand-in", tables={"ray-sub": {"script": str(standins / "ray.sub")}})


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
    watched = {
        "argv": [sys.executable, head.__file__, "run", str(folder / "head.json")],
        "cwd": str(folder),
        "log": str(folder / "log"),
        "exit": str(folder / "supervisor-exit.json"),
        "process": str(folder / "supervisor.json"),
        "timeout_seconds": 7200,
        "launcher": "test",
    }
    (folder / "spec.json").write_text(json.dumps(watched))
    holder = subprocess.Popen(
        [sys.executable, "-I", supervise.__file__, str(folder / "spec.json")],
        start_new_session=True,
        preexec_fn=_end_with_the_parent,  # noqa: PLW1509 - no thread runs yet
    )
    atexit.register(end_session, holder, folder)
    while not (folder / "address").exists():
        assert holder.poll() is None, (folder / "log").read_text()
        time.sleep(0.1)
    return (folder / "address").read_text()


def _end_with_the_parent() -> None:
    """Have the supervisor told to stop when the test process dies, however that comes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def end_session(holder: subprocess.Popen[bytes], folder: Path) -> None:
    """Have the supervisor stop the cluster, and remove its directory."""
    holder.terminate()
    holder.wait()
    shutil.rmtree(folder, ignore_errors=True)


NEEDS: dict[str, Callable[[], str]] = {"slurm": slurm, "container": podman, "ray": ray}
"""Scheduler or launcher -> why it cannot be used here, or ''."""
SITES: dict[str, Callable[[], LaunchSite]] = {
    "container": in_podman,
    "srun": through_standins,
    "ray.sub": through_standins,
}
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
