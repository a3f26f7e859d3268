"""Real Ray clusters on this machine: what their workers import, and clusters that nobody meant to join."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.preflight import trees
from tests.preflight.conftest import Find, make_venv

from proveout.domain.finding import Severity
from proveout.domain.preflight import Worker
from proveout.domain.step import Command, Coverage, Step
from proveout.domain.verdict import Verdict

pytestmark = pytest.mark.real
RAY = "ray==2.55.1"
FORWARD = "++ray_kwargs.ray_init.runtime_env.env_vars.PYTHONPATH"


@pytest.fixture(scope="session")
def ray_python() -> str:
    """An interpreter with Ray: that of PROVEOUT_TEST_RAY_PYTHON, else an environment made once and kept."""
    named = os.environ.get("PROVEOUT_TEST_RAY_PYTHON")
    if named:
        return named
    place = Path(__file__).parents[2] / ".pytest_cache" / "ray-environment"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", RAY], check=True)
        (place / "complete").touch()
    return str(python)


@pytest.fixture
def ray_tmp(env: dict[str, str]) -> Iterator[str]:
    """A short directory for Ray's sockets, also in the environment of the checks."""
    place = tempfile.mkdtemp(prefix="r")
    env["RAY_TMPDIR"] = place
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def cluster(ray_python: str, ray_tmp: str, env: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of a cluster that was started with a Bridge of its own on PYTHONPATH."""
    ray = Path(ray_python).with_name("ray")
    old = trees.bridge(tmp_path / "old")
    started = {**env, "PYTHONPATH": trees.path_of(old), "RAY_USAGE_STATS_ENABLED": "0"}
    words = [
        "start",
        "--head",
        "--port=0",
        "--num-cpus=1",
        "--include-dashboard=false",
        "--disable-usage-stats",
    ]
    subprocess.run([str(ray), *words], env=started, check=True, capture_output=True)
    yield (Path(ray_tmp) / "ray" / "ray_current_cluster").read_text()
    _end(ray_tmp)


def _end(ray_tmp: str) -> None:
    """Ends the processes of the cluster that lives in ``ray_tmp``, and no other's."""
    mine = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(ray_tmp in word for word in process.info["cmdline"] or ()) and process.pid != os.getpid()
    ]
    for process in mine:
        process.kill()
    psutil.wait_procs(mine, timeout=10)


def verl_step(*argv: str, path: str) -> tuple[Step, ...]:
    command = Command(
        argv=("bash", "run_ppo_trainer_megatron.sh", *argv), env={"PYTHONPATH": path, "VERL_USE_UV": "0"}
    )
    return (Step(id="v", coverage=Coverage(loop="verl", level=0), deliverable="", claim="", command=command),)


def test_a_worker_of_a_running_cluster_that_imports_another_copy_is_caught(
    find: Find, cluster: str, ray_python: str, tmp_path: Path
) -> None:
    """The driver's import is right; the cluster was started with another PYTHONPATH."""
    checkout = trees.bridge(tmp_path / "bridge")
    path = trees.path_of(checkout)
    worker = (Worker(name="verl", argv=(ray_python,), loop="verl", env={"PYTHONPATH": path}),)
    fields = {"loops": (), "checkouts": {"bridge": checkout}, "workers": worker}

    assert find("imports", steps=verl_step(path=path), **fields) == ()
    bridge, core = find("ray-imports", steps=verl_step(path=path), **fields)
    assert bridge.id == "preflight.ray-imports.other-copy" and bridge.decides is Verdict.BLOCKED
    assert str(tmp_path / "old") in bridge.what and core.id == "preflight.ray-imports.mcore-other"

    handed_on = verl_step(f"{FORWARD}={path}", path=path)
    assert find("ray-imports", steps=handed_on, **fields) == ()

    leftover, other_path = find("ray-cluster", steps=verl_step(path=path), **fields)
    assert leftover.id == "preflight.ray-cluster.leftover" and cluster in leftover.what
    assert other_path.id == "preflight.ray-cluster.pythonpath" and FORWARD in other_path.remedy
    assert [f.id for f in find("ray-cluster", steps=handed_on, **fields)] == [leftover.id]


def test_a_driver_of_another_version_is_refused_before_the_run(
    find: Find, cluster: str, ray_python: str, tmp_path: Path
) -> None:
    from tests.preflight.conftest import distribution

    distribution(tmp_path / "versions", "ray", "2.41.0")
    worker = (
        Worker(name="V", argv=(ray_python,), loop="verl", env={"PYTHONPATH": str(tmp_path / "versions")}),
    )
    found = find("ray-cluster", loops=("verl",), workers=worker, env={"RAY_ADDRESS": cluster})
    version = next(finding for finding in found if finding.id == "preflight.ray-cluster.version")
    assert version.decides is Verdict.BLOCKED and "Ray 2.55.1" in version.what and "2.41.0" in version.what
    mine = (Worker(name="V", argv=(ray_python,), loop="verl"),)
    ids = [f.id for f in find("ray-cluster", loops=("verl",), workers=mine, env={"RAY_ADDRESS": cluster})]
    assert ids == ["preflight.ray-cluster.pythonpath"]


def test_workers_in_their_own_environments_are_told_apart(
    find: Find, ray_python: str, ray_tmp: str, tmp_path: Path
) -> None:
    """As NeMo-RL starts them: a local cluster, and for each actor its own interpreter and PYTHONPATH."""
    checkout = trees.bridge(tmp_path / "bridge")
    (packages,) = (Path(ray_python).parents[1] / "lib").glob("python*/site-packages")
    workers = []
    for name in ("clean", "copied"):
        python = make_venv(tmp_path / name)
        (own,) = (tmp_path / name / "lib").glob("python*/site-packages")
        (own / "ray.pth").write_text(f"{packages}\n")
        workers.append(Worker(name=name, argv=(python,), loop="nemo-rl"))
    trees.package(own, "megatron.bridge")
    trees.package(own, "megatron.core")
    (tmp_path / "clean" / own.relative_to(tmp_path / "copied") / "bridge.pth").write_text(
        trees.path_of(checkout).replace(":", "\n")
    )
    bridge, core = find(
        "ray-imports",
        loops=("nemo-rl",),
        checkouts={"bridge": checkout},
        workers=tuple(workers),
        settings={"ray.probe": "local"},
    )
    assert bridge.what.startswith("a Ray worker of copied would import megatron.bridge from")
    assert bridge.where.file == workers[1].argv[0] and core.severity is Severity.WARNING


def test_an_interpreter_without_ray_is_said(find: Find, bare_python: str, tmp_path: Path) -> None:
    worker = (Worker(name="W", argv=(bare_python,), loop="verl"),)
    (finding,) = find(
        "ray-imports",
        loops=("verl",),
        checkouts={"bridge": trees.bridge(tmp_path / "bridge")},
        workers=worker,
        settings={"ray.probe": "local"},
    )
    assert finding.id == "preflight.ray-imports.driver" and "No module named 'ray'" in finding.what


def test_a_dead_address_blocks_and_a_stale_file_is_noticed(
    find: Find, ray_tmp: str, bare_python: str
) -> None:
    worker = (Worker(name="W", argv=(bare_python,), loop="verl"),)
    fields = {"loops": ("verl",), "workers": worker}
    assert find("ray-cluster", **fields) == ()
    (dead,) = find("ray-cluster", env={"RAY_ADDRESS": "127.0.0.1:1"}, **fields)
    assert dead.decides is Verdict.BLOCKED and "127.0.0.1:1" in dead.what
    file = Path(ray_tmp) / "ray" / "ray_current_cluster"
    file.parent.mkdir()
    file.write_text("127.0.0.1:1")
    (stale,) = find("ray-cluster", **fields)
    assert stale.severity is Severity.NOTICE and stale.where.file == str(file)
