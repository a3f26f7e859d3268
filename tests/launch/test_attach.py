"""An attach script is stale when its job is over or its container is blind; then a fresh step is told."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Answer
from tests.launch.engines import require
from tests.launch.test_container_steps import STANDINS

SCRIPT = """WORKER_NUM=${{1:-}}
if [[ -n "${{COMMAND:-}}" ]]; then
  srun --no-container-mount-home --overlap --container-image=image --container-name=ray-head \
    --container-workdir={workdir} --nodes=1 --ntasks=1 -w "steady" --jobid {job} bash -c "$COMMAND"
fi
"""

pytestmark = pytest.mark.real


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    require("slurm")
    monkeypatch.setenv("PATH", f"{STANDINS}{os.pathsep}{os.environ['PATH']}")
    words = ["sbatch", "--parsable", "--output=/dev/null", "--ntasks=1", "--wrap", "sleep 300"]
    number = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    limit = time.monotonic() + 60
    while state(number) != "RUNNING":
        assert time.monotonic() < limit
        time.sleep(0.2)
    yield number
    subprocess.run(["scancel", number], check=False)


def state(number: str) -> str:
    words = ["squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%T"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def test_it_is_used_while_it_sees_and_replaced_when_it_does_not(
    proveout: Callable[..., Answer], tmp_path: Path, job: str
) -> None:
    script = tmp_path / f"{job}-attach.sh"
    script.write_text(SCRIPT.format(job=job, workdir=tmp_path))
    good = proveout("attach", str(script), "--sees", str(tmp_path))
    assert good.status == 0, good.out + good.err
    blind = proveout("attach", str(script), "--sees", "/no/such/checkout", "--image", "my/image:1")
    assert blind.status == 3
    assert "does not see /no/such/checkout" in blind.out
    assert f"srun --jobid={job} --overlap" in blind.out
    for option in ("--container-image=my/image:1", "--container-mounts=", f"--container-workdir={tmp_path}"):
        assert option in blind.out
    subprocess.run(["scancel", job], check=True)
    limit = time.monotonic() + 60
    while state(job) == "RUNNING":
        assert time.monotonic() < limit
        time.sleep(0.2)
    over = proveout("attach", str(script))
    assert over.status == 3 and "the allocation is over" in over.out
    (tmp_path / "other.sh").write_text("echo hello")
    assert proveout("attach", str(tmp_path / "other.sh")).status == 2
