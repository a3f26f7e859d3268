"""Disk, run directory, memory, cores: each fires on a real shortage and is silent without one."""

from __future__ import annotations

import json
import os
import resource
import socket
from pathlib import Path

import pytest
from tests.conftest import call
from tests.preflight.conftest import Find, proveout

from proveout.domain.finding import Severity
from proveout.domain.verdict import Verdict


def test_a_full_disk_blocks_the_run(find: Find, tiny_disk: Path) -> None:
    (finding,) = find("disk", run_dir=str(tiny_disk / "run"))
    assert finding.decides is Verdict.BLOCKED
    assert finding.where.file == str(tiny_disk)


def test_a_full_model_cache_warns_a_stack_loop_only(find: Find, tiny_disk: Path) -> None:
    settings = {"disk.run_stack_gib": "0", "disk.temp_stack_gib": "0", "disk.cache_stack_gib": "0.01"}
    env = {"HF_HOME": str(tiny_disk)}
    first, second = find("disk", loops=("verl",), env=env, settings=settings)
    assert (first.severity, first.decides) == (Severity.WARNING, None)
    assert "HF_HOME" in first.what and "conversion cache" in second.what
    assert find("disk", loops=("bench",), env=env, settings=settings) == ()


def test_enough_disk_is_silent(find: Find) -> None:
    assert find("disk", settings={"disk.run_small_gib": "0.0001"}) == ()


def test_a_run_directory_that_takes_no_file_blocks(find: Find, tmp_path: Path, tiny_disk: Path) -> None:
    assert find("run-directory", run_dir="/proc/proveout")[0].decides is Verdict.BLOCKED
    file = tmp_path / "file"
    file.write_text("x")
    assert "is a file" in find("run-directory", run_dir=str(file / "run"))[0].what
    tiny_disk.joinpath("filler").write_bytes(b"x" * 256 * 1024)
    (full,) = find("run-directory", run_dir=str(tiny_disk))
    assert "No space left" in full.what
    assert [path.name for path in tiny_disk.iterdir()] == ["filler"]


def test_a_writable_run_directory_is_silent_and_left_alone(find: Find, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert find("run-directory", run_dir=str(tmp_path / "not" / "there" / "yet")) == ()
    assert sorted(tmp_path.iterdir()) == before


def test_memory_is_compared_with_what_the_loop_wants(find: Find) -> None:
    (bench,) = find("memory", settings={"memory.small_gib": "1000000"})
    (stack,) = find("memory", loops=("nemo-rl",), settings={"memory.stack_gib": "1000000"})
    assert bench.decides is Verdict.BLOCKED and stack.decides is None
    assert find("memory", settings={"memory.small_gib": "0.01"}) == ()


def test_cores_are_those_that_the_process_may_use() -> None:
    words = ("doctor", "--only", "cores", "--set", "cores.small=2", "--json")
    one = min(os.sched_getaffinity(0))
    pinned = proveout(*words, preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert "1 cores may be used" in pinned.stdout and pinned.returncode == 0
    assert (
        "may be used" not in proveout("doctor", "--only", "cores", "--set", "cores.small=1", "--json").stdout
    )


def test_small_shared_memory_warns_a_stack_loop(find: Find, tiny_disk: Path, tmp_path: Path) -> None:
    (small,) = find("shm", loops=("verl",), settings={"shm.path": str(tiny_disk)})
    assert "0.00 GiB of shared memory free" in small.what and "--shm-size" in small.remedy
    (none,) = find("shm", loops=("verl",), settings={"shm.path": str(tmp_path / "none")})
    assert none.severity is Severity.WARNING
    assert find("shm", loops=("verl",), settings={"shm.stack_gib": "0"}) == ()
    assert find("shm", loops=("bench",), settings={"shm.path": str(tiny_disk)}) == ()


def test_a_port_in_use_blocks_as_long_as_it_is_in_use(find: Find) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        (taken,) = find("ports", env={"MASTER_PORT": port})
        assert taken.decides is Verdict.BLOCKED and f"port {port}" in taken.what
        (also,) = find("ports", settings={"ports.also": port})
        assert also.severity is Severity.WARNING
    assert find("ports", env={"MASTER_PORT": port}) == ()


def test_low_limits_warn_by_the_flag_that_raises_them() -> None:
    words = ("doctor", "--only", "ulimit", "--json")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 4096))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024**2, 1024**2))

    findings = json.loads(proveout(*words, preexec_fn=limit).stdout)["findings"]
    assert [finding["where"]["key"] for finding in findings] == ["ulimit -n", "ulimit -f"]
    assert "with a larger number" in findings[0]["remedy"] and "hard limit" in findings[1]["remedy"]
    easy = [word for name in ("files", "processes") for word in ("--set", f"ulimit.small_{name}=1")]
    assert json.loads(proveout(*words, *easy).stdout)["findings"] == []


def test_the_variable_replaces_a_limit_and_a_setting_comes_before_it(find: Find) -> None:
    asked = {"PROVEOUT_LIMITS": "disk.run_stack_gib=1e9, disk.temp_stack_gib=0"}
    (finding, *_) = find("disk", loops=("verl",), env=asked)
    assert finding.decides is Verdict.BLOCKED
    assert "disk.run_stack_gib in PROVEOUT_LIMITS" in finding.remedy
    settings = {"disk.run_stack_gib": "0", "disk.cache_stack_gib": "0"}
    assert find("disk", loops=("verl",), env=asked, settings=settings) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("disk.run_stack_gb=1", "disk.run_stack_gib"),
        ("disk.run_stack_gib=much", "no"),
        ("half", "NAME=VALUE"),
    ],
)
def test_a_variable_that_says_nothing_known_is_wrong_usage(words: str, said: str, tmp_path: Path) -> None:
    answer = call("doctor", cwd=tmp_path, env={"PROVEOUT_LIMITS": words})
    assert answer.status == 2
    assert said in answer.err
