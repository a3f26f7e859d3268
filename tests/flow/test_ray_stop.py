"""``--ray-stop`` ends the cluster that the run would join, and nothing that belongs to anybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from proveout.domain.preflight import PreflightContext
from proveout.flow.ray_stop import stop_joined

Start = Callable[[str, str], list[psutil.Process]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Start]:
    """Starts processes that look as a cluster does: a raylet with a worker, and the GCS of its session."""
    started: list[psutil.Process] = []

    def start(address: str, session: str) -> list[psutil.Process]:
        shell = shutil.which("bash")
        assert shell is not None
        found = []
        for name, script in (("raylet", "sleep 600 & echo; wait"), ("gcs_server", "echo; read x")):
            program = tmp_path / name
            if not program.exists():
                shutil.copy(shell, program)
            words = [str(program), "-c", script, name, f"--gcs-address={address}"]
            words.append(f"--session_dir={tmp_path}/{session}/sockets")
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()
            found.append(psutil.Process(process.pid))
        found += found[0].children()
        started.extend(found)
        return found

    yield start
    for process in started:
        if process.is_running():
            process.kill()


def context(tmp_path: Path, address: str) -> PreflightContext:
    folder = tmp_path / "ray"
    folder.mkdir(exist_ok=True)
    (folder / "ray_current_cluster").write_text(address)
    return PreflightContext(run_dir="", loops=("verl",), env={"RAY_TMPDIR": str(tmp_path)})


def alive(processes: list[psutil.Process]) -> list[bool]:
    return [process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes]


def test_the_joined_cluster_ends_and_another_one_stays(cluster: Start, tmp_path: Path) -> None:
    ours, other = cluster("127.0.0.1:1", "session_a"), cluster("127.0.0.1:2", "session_ab")
    (found,) = stop_joined(context(tmp_path, "127.0.0.1:1"), os.getuid())
    assert found.id == "flow.ray-stop.ended" and "(3 processes)" in found.what
    assert not any(alive(ours)) and all(alive(other)) and len(ours) == len(other) == 3
    assert not (tmp_path / "ray/ray_current_cluster").exists()


def test_a_cluster_of_another_user_is_left_alone(cluster: Start, tmp_path: Path) -> None:
    theirs = cluster("127.0.0.1:1", "session_a")
    (found,) = stop_joined(context(tmp_path, "127.0.0.1:1"), os.getuid() + 1)
    assert found.id == "flow.ray-stop.foreign" and found.remedy
    assert all(alive(theirs))


def test_a_cluster_that_is_meant_is_left_alone(cluster: Start, tmp_path: Path) -> None:
    meant = cluster("127.0.0.1:1", "session_a")
    asked = PreflightContext(run_dir="", loops=("verl",), env={"RAY_ADDRESS": "127.0.0.1:1"})
    assert stop_joined(asked, os.getuid())[0].id == "flow.ray-stop.meant"
    assert all(alive(meant))


def test_without_a_cluster_there_is_nothing_to_end(tmp_path: Path) -> None:
    nothing = PreflightContext(run_dir="", loops=("bench",), env={"RAY_TMPDIR": str(tmp_path)})
    assert stop_joined(nothing, os.getuid())[0].id == "flow.ray-stop.none"
    assert stop_joined(context(tmp_path, "10.0.0.1:6379"), os.getuid())[0].id == "flow.ray-stop.elsewhere"
