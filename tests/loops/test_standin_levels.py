"""Every level of NeMo-RL and verl goes through the command line on stand-ins with real training behind.

Which: in the two tests of every level, an entry replays a bench run of 20 steps made in this test session (a
training of its own for each of the 30 runs would take minutes); level 0 of NeMo-RL and level 1 of verl (save, then
resume) train with the bench loop inside the stand-in's own entry, its checkpoints being the bench loop's.
"""

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
    answer = proveout("nemo-rl", "--level", "0-6", "--json")
    found = verdicts(answer)
    levels = {step["level"] for step in json.loads(answer.out)["steps"]}
    assert levels == set(range(7))
    assert set(found.values()) == {"Pass"}, why(answer)
    assert answer.status == 0


def test_every_level_of_verl(proveout: Run, verl_data: None) -> None:
    answer = proveout("verl", "--level", "0-5", "--set", "reward_model=off", "--json")
    assert set(verdicts(answer).values()) == {"Pass"}, why(answer)
    report = json.loads(answer.out)
    assert {step["level"] for step in report["steps"]} == set(range(6))
    assert any("reward model was off" in text for text in report["limitations"])


def test_a_functional_script_prints_its_checks(
    proveout: Run, stand_ins: dict[str, str], recording: Path, tmp_path: Path
) -> None:
    env = {**standins.environment(tmp_path / "bin", recording), "TORCH_CUDA_ARCH_LIST": "9.0"}
    words = ("--nemo-rl", stand_ins["nemo-rl"], "--bridge", stand_ins["bridge"])
    answer = call("functional", "grpo_megatron.sh", *words, cwd=tmp_path, env=env)
    assert answer.status == 0, answer.out + answer.err
    assert 'pass  max(data["train/token_mult_prob_error"]) < 1.05  value 1' in answer.out
    wrong = call("functional", "grpo_megatorn", *words, cwd=tmp_path, env=env)
    assert wrong.status == 2 and "did you mean 'grpo_megatron'" in wrong.err


def test_tests_that_are_all_deselected_are_no_pass(proveout: Run, stand_ins: dict[str, str]) -> None:
    for path in Path(stand_ins["bridge"], "tests").rglob("test_*.py"):
        path.write_text("import pytest\n\n\n@pytest.mark.skip\ndef test_it():\n    assert True\n")
    answer = proveout("nemo-rl", "--level", "0", "--json")
    report = json.loads(answer.out)
    assert verdicts(answer)["bridge-tests"] == "Fail" and answer.status == 1
    line = next(item for item in report["deliverables"] if item["name"] == "Bridge-side checks")
    assert line["verdict"] == "Fail"
