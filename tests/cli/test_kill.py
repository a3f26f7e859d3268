"""Whatever is killed at whatever moment: the run reads, never says Pass before its time, and can be finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.cli.kills import LEVEL_0, delays, kill_once

pytestmark = pytest.mark.real


@pytest.mark.parametrize("whole_group", [False, True], ids=["proveout alone", "and all it started"])
@pytest.mark.parametrize("delay", delays(2, 4.0, seed=7), ids=lambda delay: f"{delay:.2f} s")
def test_sigkill_leaves_an_incomplete_run_that_resume_finishes(
    tmp_path: Path, delay: float, whole_group: bool
) -> None:
    left = kill_once(tmp_path, delay, whole_group=whole_group)
    if left.killed and left.made_a_run:
        assert (left.reported, left.report_status) == ("Incomplete", 4)
        assert (left.resumed, left.resume_status) == ("Pass", 0)


def test_ctrl_c_takes_the_children_along_and_keeps_the_evidence(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "proveout", *LEVEL_0, "max_steps=100000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    log = None
    while log is None or "=== Step" not in log.read_text():
        found = list(tmp_path.glob(".proveout/runs/[!.]*/attempts/*/run.log"))
        log = found[0] if found else None
        os.sched_yield()
    below = psutil.Process(started.pid).children(recursive=True)
    assert below
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=10)
    assert started.returncode == 4
    _, alive = psutil.wait_procs(below, timeout=5)
    assert not alive
    assert "=== Step" in log.read_text()
    assert out.startswith("Result: Incomplete")
    assert (log.parent / "result.json").exists()
