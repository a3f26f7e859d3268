"""1,000 steps planned, submitted and followed through a real Slurm: calls to it, memory, processor time.

    eval "$(.ci/slurm env)"; python benchmarks/matrix.py [STEPS]

The peer is a loop as people write it: one sbatch for each step, one squeue for each step and poll.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest
from tests.flow.small_runs import Told, small, small_run
from tests.launch.shim import Calls, counted_calls

from proveout import launch
from proveout.domain.step import Resources
from proveout.flow.execute import Budget, Policy, execute
from proveout.flow.matrix import Matrix, plan_matrix
from proveout.flow.planning import PlanRequest
from proveout.launch import LaunchSite

PEER_STEPS = 40


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def planned(count: int) -> float:
    """Seconds to plan ``count`` steps of the bench loop, its own check of the words included."""
    began = time.monotonic()
    matrix = Matrix(levels=("0",), seeds=tuple(range(count)), overrides=("max_steps=2",))
    plans = plan_matrix(matrix, PlanRequest(), Path("trees"))
    assert sum(len(each.plan.steps) for each in plans) == count
    return time.monotonic() - began


def followed(count: int, folder: Path, calls: Calls) -> dict[str, float]:
    """Submit and follow ``count`` short steps to their verdicts."""
    short = Resources(timeout_minutes=5)
    run = small_run(folder, [small(f"s{number}", "pass", resources=short) for number in range(count)])
    told = Told()
    site = launch.launch_for(LaunchSite(scheduler="slurm"))
    began, used = time.monotonic(), time.process_time()
    execute(run, Policy(launch=site, budget=Budget(jobs=count)), told)
    seconds = time.monotonic() - began
    assert list(told.verdicts.values()).count("Pass") == count, told.verdicts
    return {
        "seconds": seconds,
        "own processor seconds": time.process_time() - used,
        "calls to Slurm": float(calls.counted().total()),
        "calls a second": calls.counted().total() / seconds,
    }


def peer(count: int, folder: Path, calls: Calls) -> dict[str, float]:
    """One sbatch a step, one squeue a step and second."""
    before, began = calls.counted().total(), time.monotonic()
    output = str(folder / "peer-%j.out")
    words = ["sbatch", "--parsable", f"--output={output}", "--wrap", "true"]
    left = {
        subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() for _ in range(count)
    }
    while left:
        for job in list(left):
            asked = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
            state = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
            if state == "COMPLETED":
                left.discard(job)
        time.sleep(1)
    made, seconds = calls.counted().total() - before, time.monotonic() - began
    return {"calls to Slurm": float(made), "seconds": seconds, "calls a second": made / seconds}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    folder = Path(tempfile.mkdtemp(prefix="proveout-matrix-"))
    patch = pytest.MonkeyPatch()
    try:
        seconds = planned(count)
        calls = counted_calls(folder / "bin", patch)
        ours = followed(count, folder, calls)
        result = {"steps": count, "planned in seconds": seconds, "ours": ours, "memory MB": memory_mb()}
        result[f"peer, {PEER_STEPS} steps"] = peer(PEER_STEPS, folder, calls)
        print(json.dumps(result, indent=2))
        assert ours["calls a second"] < 1 and memory_mb() < 300
    finally:
        patch.undo()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
