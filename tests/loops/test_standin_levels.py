"""Every level of NeMo-RL and verl goes through the command line on stand-ins with real training behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, call
from tests.loops import standins

pytestmark = pytest.mark.real
Run = Callable[..., Answer]


@pytest.fixture
def proveout(stand_ins: dict[str, str], recording: Path, tmp_path: Path) -> Run:
    env = {**standins.environment(tmp_path / "bin", recording), "TORCH_CUDA_ARCH_LIST": "9.0"}

    def run(loop: str, *words: str, **more: str) -> Answer:
        trees = ("--bridge", stand_ins["bridge"], f"--{loop}", stand_ins[loop], "--loop", loop)
        return call("run", *trees, *words, cwd=tmp_path, env={**env, **more})

    return run


def verdicts(answer: Answer) -> dict[str, str]:
    return {step["id"]: step["verdict"] for step in json.loads(answer.out)["steps"]}


def why(answer: Answer) -> Any:
    report = json.loads(answer.out)
    return [
        (step["id"], step["reason"], [f["what"] for a in step["attempts"] for f in a["findings"]])
        for step in report["steps"]
        if step["verdict"] != "Pass"
    ]


def test_every_level_of_nemo_rl(proveout: Run) -> None:
    answer = proveout("nemo-rl", "--level", "0-4,6", "--json")
    found = verdicts(answer)
    assert {f"nemo-rl-L{level}" for level in (0, 1, 2, 3, 4, 6)} <= {
        name.rpartition("-")[0] for name in found
    } | {name[:10] for name in found}
    assert set(found.values()) == {"Pass"}, why(answer)
    assert answer.status == 0


def test_every_level_of_verl(proveout: Run) -> None:
    answer = proveout("verl", "--level", "0-3,5", "--json")
    assert set(verdicts(answer).values()) == {"Pass"}, why(answer)
