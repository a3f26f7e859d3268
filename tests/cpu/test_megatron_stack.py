"""Each repair on the real Megatron wheels: what needs it holds with it, and not without it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.stack import python_of

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("megatron_probe.py")
CHECKS = (
    "cuda_generator",
    "root_mean_square_norm",
    "all_to_all_splits",
    "offload",
    "transformer_engine_flags",
    "absent_imports",
)
pytestmark = pytest.mark.stack("bridge-cpu")


def probe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python_of("bridge-cpu"), str(PROBE), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("check", CHECKS)
def test_what_needs_the_repair_holds_with_it(check: str) -> None:
    done = probe(check)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("check", CHECKS)
def test_what_needs_the_repair_fails_without_it(check: str) -> None:
    assert probe(check, "--without", check).returncode != 0
