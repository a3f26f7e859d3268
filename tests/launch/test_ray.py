"""Ray jobs in real clusters: what is handed in, and what is said when the cluster, the head or another ends them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conftest import Answer
from tests.launch.engines import ray_address, ray_program, require

from proveout import launch
from proveout.domain.checkout import Checkout
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import Job, Launch, LaunchSite
from proveout.launch.ray.jobs import Jobs
from proveout.launch.ray.settings import RaySettings, address_of

pytestmark = pytest.mark.real
PATIENCE_SECONDS = 180.0


@pytest.fixture(autouse=True)
def engine() -> None:
    require("ray")


@pytest.fixture
def files(tmp_path: Path) -> AttemptLayout:
    root = tmp_path / "run" / "attempts" / "01"
    root.mkdir(parents=True)
    return AttemptLayout(root)


def starting(**settings: Any) -> Launch:
    table = {"address": ray_address(), "python": sys.executable, **settings}
    return launch.launch_for(LaunchSite(scheduler="ray", tables={"ray": table}))


def python(files: AttemptLayout, code: str, **env: str) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=str(files.root), env=env)


def wait(job: Job) -> ExitRecord:
    while (record := job.poll()) is None:
        time.sleep(0.05)
    return record


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def job_of(files: AttemptLayout) -> str:
    return str(read_json(files.root / "ray.json", dict[str, Any])["job"])


def test_secrets_are_not_handed_to_a_cluster_that_shows_its_jobs(files: AttemptLayout) -> None:
    command = python(
        files, "import os; print(os.environ.get('HF_TOKEN'))", HF_TOKEN="planted-token", SEEN="1"
    )
    assert wait(starting().submit(command, files, Resources())).ok
    assert files.log.read_text().split() == ["None"]
    with urllib.request.urlopen(f"{ray_address()}/api/jobs/{job_of(files)}") as answer:
        shown = answer.read().decode()
    assert "planted-token" not in shown
    assert json.loads(shown)["runtime_env"]["env_vars"]["SEEN"] == "1"
    facts = launch.launch_record(files)
    assert facts is not None
    assert facts.facts["not handed to the cluster (secret)"] == "HF_TOKEN"


def test_workers_of_the_command_get_its_import_path(files: AttemptLayout, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "found_here.py").write_text("value = 'in a worker'")
    code = (
        "import ray\n"
        "ray.init(log_to_driver=False)\n"
        "print(ray.get(ray.remote(lambda: __import__('found_here').value).remote()))"
    )
    with_ray = ray_program().removesuffix("ray") + "python"
    command = Command(
        argv=(with_ray, "-c", code), cwd=str(files.root), env={"PYTHONPATH": str(tmp_path / "lib")}
    )
    assert wait(starting().submit(command, files, Resources())).ok
    assert files.log.read_text().splitlines()[-1] == "in a worker"


def test_the_log_begins_with_what_workers_would_import(files: AttemptLayout, tmp_path: Path) -> None:
    package = tmp_path / "bridge" / "src" / "megatron" / "bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the probe must not load it')")
    write_json(tmp_path / "run" / "checkouts.json", [Checkout(role="bridge", path=str(tmp_path / "bridge"))])
    with_ray = ray_program().removesuffix("ray") + "python"
    command = python(files, "print('the command')", PYTHONPATH=str(tmp_path / "bridge" / "src"))
    assert wait(starting(python=with_ray).submit(command, files, Resources())).ok
    lines = files.log.read_text().splitlines()
    assert f"[import] worker megatron.bridge {package / '__init__.py'}" in lines
    assert any(line.startswith("[import] worker megatron.core (none: ") for line in lines)
    assert lines[-1] == "the command"


def test_a_job_that_another_stops_through_ray_is_incomplete(files: AttemptLayout) -> None:
    job = starting().submit(
        python(files, "import time; print('up', flush=True); time.sleep(600)"), files, Resources()
    )
    until(lambda: files.log.exists() and files.log.read_text())
    Jobs(ray_address()).stop(job_of(files))
    record = wait(job)
    assert (record.end, record.detail) == (End.INTERRUPTED, "stopped through Ray by another")
    assert launch.launch_for(LaunchSite(scheduler="ray")).reattach(files) == record


def test_an_address_where_nothing_answers_is_blocked(files: AttemptLayout) -> None:
    with pytest.raises(BlockedError, match=r"http://127\.0\.0\.1:9: no Ray Jobs API answers: .*refused"):
        starting(address="http://127.0.0.1:9").submit(python(files, "pass"), files, Resources())


@pytest.mark.parametrize("named", ["head:6379", "ray://head:10001"])
def test_an_address_that_is_not_that_of_the_jobs_api_is_wrong_usage(named: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a Jobs API"):
        address_of(RaySettings(), {"RAY_ADDRESS": named})


def test_a_ray_that_is_not_there_is_blocked(files: AttemptLayout) -> None:
    with pytest.raises(BlockedError, match="no Ray here"):
        starting(address="", program="no-such-ray").submit(python(files, "pass"), files, Resources())


def test_a_cluster_that_does_not_start_is_blocked_with_its_last_line(
    files: AttemptLayout, tmp_path: Path
) -> None:
    broken = tmp_path / "ray"
    broken.write_text("#!/bin/sh\necho no room for Ray here; exit 1\n")
    broken.chmod(0o755)
    begin = starting(address="", program=str(broken), start_seconds=20)
    with pytest.raises(BlockedError, match="the Ray cluster did not start"):
        begin.submit(python(files, "pass"), files, Resources())
    assert "no room for Ray here" in (files.root / "ray" / "run.log").read_text()


@pytest.fixture
def own(files: AttemptLayout) -> Iterator[tuple[Job, Path]]:
    """A job that sleeps in a cluster of its own, and where that cluster lives."""
    begin = starting(address="", program=ray_program(), num_cpus=1)
    code = "import time; print('up', flush=True); time.sleep(600)"
    job = begin.submit(python(files, code), files, Resources())
    until(lambda: files.log.exists() and files.log.read_text())
    place = Path((files.root / "ray" / "place").read_text())
    yield job, place
    job.cancel()


def processes_of(place: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.pid != os.getpid() and any(str(place) in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_a_cluster_of_its_own_is_gone_with_the_cancelled_job(
    own: tuple[Job, Path], files: AttemptLayout
) -> None:
    job, place = own
    assert processes_of(place)
    assert job.cancel().end is End.INTERRUPTED
    assert not processes_of(place)
    assert not place.exists()
    assert list((files.root / "ray" / "logs").iterdir())


def test_a_killed_head_ends_the_attempt_as_the_machines_fault(
    own: tuple[Job, Path], files: AttemptLayout
) -> None:
    job, place = own
    for process in processes_of(place):
        if process.name() in ("gcs_server", "raylet"):
            process.kill()
    record = wait(job)
    assert record.end is End.EVICTED
    assert "Ray head at http://127.0.0.1" in record.detail
    assert read_json(files.exit, ExitRecord) == record
    assert not processes_of(place)


def test_a_killed_proveout_is_picked_up_and_the_ray_job_judged(
    tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    words = ["run", "--level", "bench:0", "--scheduler", "ray", "--ray-address", ray_address()]
    words += ["--launch", f"ray.python={sys.executable}"]
    driver = subprocess.Popen(
        [sys.executable, "-m", "proveout", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: list(tmp_path.glob(".proveout/runs/*/attempts/*/config.json")))
    driver.kill()
    driver.wait()
    answer = proveout("resume", "--json")
    assert (answer.json["result"], answer.status) == ("Pass", 0)
    (attempt,) = answer.json["steps"][0]["attempts"]
    assert attempt["exit"]["launcher"] == "ray+process"
    assert attempt["launch"]["facts"]["ray"].startswith(ray_address())
