"""The report of each overall verdict, from runs of the stand-ins, as somebody reads it who was not there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.conftest import call
from tests.loops import standins

pytestmark = pytest.mark.real
_VARIES = (
    (r"\b[0-9a-f]{9}\b", "<commit>"),
    (r"\b[0-9a-f]{12}\b", "<commit>"),
    (r"\d{8}-\d{6}-[0-9a-f]{6}", "<run>"),
    (r"events\.out\.tfevents\.[\w.\[\]-]+", "<events>"),
    (r"-?\d+\.\d+(?:e[-+]\d+)?", "<number>"),
    (r"\b\d+e-\d+\b", "<number>"),
    (r"proveout <number>(?:\.\d+)?", "proveout <version>"),
)


@pytest.fixture
def report(stand_ins: dict[str, str], recording: Path, tmp_path: Path, verl_data: None) -> Callable[..., str]:
    """The text report of a run with faults, without what differs from one machine or minute to the next."""

    def run(loop: str, *words: str, faults: tuple[str, ...] = ()) -> str:
        env = {**standins.environment(tmp_path / "bin", recording, *faults), "TORCH_CUDA_ARCH_LIST": "9.0"}
        off = ("--set", "reward_model=off") if loop == "verl" else ()
        trees = ("--bridge", stand_ins["bridge"], f"--{loop}", stand_ins[loop], "--loop", loop)
        text = call("run", *trees, *off, *words, cwd=tmp_path, env=env).out
        for place in (str(Path(standins.__file__).parents[2] / "src"), str(Path(sys.executable).parents[1])):
            text = text.replace(place, "<installed>")
        text = text.replace(str(tmp_path), "<here>")
        for pattern, name in _VARIES:
            text = re.sub(pattern, name, text)
        return text

    return run


def test_pass(report: Callable[..., str], snapshot: SnapshotAssertion) -> None:
    """One level of verl, with what Ray and torch print at the end, and the reward model off."""
    text = report("verl", "--level", "0", faults=("noise",))
    assert text.startswith("Result: Pass - ") and "residual log noise after the end: " in text
    assert "the reward model was off" in text and "NeMo-RL loop: Not requested" in text
    assert text == snapshot


def test_fail(report: Callable[..., str], snapshot: SnapshotAssertion) -> None:
    """The save of level 1 breaks, so its resume is skipped."""
    text = report("verl", "--level", "1/lora", faults=("checkpoint-manager",))
    assert text.startswith("Result: Fail - ") and "was skipped: it needs verl-L1-save" in text
    assert "the provider had been constructed when the run stopped" in text
    assert text == snapshot


def test_blocked(report: Callable[..., str], snapshot: SnapshotAssertion) -> None:
    """No GPU for Ray: nothing is said against the change."""
    text = report("nemo-rl", "--level", "0", faults=("no-gpus",))
    assert text.startswith("Result: Blocked - ") and "this is no evidence against the change" in text
    assert "the run stopped before the provider was constructed" in text
    assert text == snapshot
