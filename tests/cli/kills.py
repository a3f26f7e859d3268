"""Kills ``proveout run`` with SIGKILL at a random moment and looks at what is left. Used by a test and a script."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LEVEL_0 = ("run", "--level", "0")


@dataclass(frozen=True)
class AfterKill:
    """What the run directory said right after the kill, and how ``resume`` ended."""

    delay: float
    killed: bool
    made_a_run: bool
    reported: str
    report_status: int
    resumed: str
    resume_status: int


def kill_once(here: Path, delay: float, *, whole_group: bool) -> AfterKill:
    """Start level 0 in ``here``, kill it after ``delay`` seconds, read the report, then resume.

    ``whole_group`` also kills everything that the run started (as a machine that loses power would).
    """
    started = subprocess.Popen(
        [sys.executable, "-m", "proveout", *LEVEL_0],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        started.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        if whole_group:
            _kill_below(started.pid)
        started.kill()
        started.wait()
    killed = started.returncode == -signal.SIGKILL
    runs = here / ".proveout" / "runs"
    made = runs.is_dir() and any(entry.name[0] != "." for entry in runs.iterdir())
    if not made:
        return AfterKill(delay, killed, False, "", 0, "", 0)
    reported, report_status = _json("report", "--json", here=here)
    resumed, resume_status = _json("resume", "--json", here=here)
    return AfterKill(delay, killed, True, reported, report_status, resumed, resume_status)


def delays(count: int, longest: float, seed: int) -> list[float]:
    """Random moments in [0, longest] seconds, the same for the same seed."""
    source = random.Random(seed)
    return [source.uniform(0.0, longest) for _ in range(count)]


def _kill_below(pid: int) -> None:
    import psutil

    for process in psutil.Process(pid).children(recursive=True):
        os.kill(process.pid, signal.SIGKILL)


def _json(*arguments: str, here: Path) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-m", "proveout", *arguments], cwd=here, capture_output=True, text=True, check=False
    )
    if "Traceback" in done.stderr:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["result"], done.returncode
