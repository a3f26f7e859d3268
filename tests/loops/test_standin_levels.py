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
    assert answer.status == 0 and "converged" not in answer.out and "learning signal passed" in answer.out


def test_every_level_of_verl(proveout: Run, verl_data: None) -> None:
    answer = proveout("verl", "--level", "0-5", "--set", "reward_model=off", "--json")
    assert set(verdicts(answer).values()) == {"Pass"}, why(answer)
    report = json.loads(answer.out)
    assert {step["level"] for step in report["steps"]} == set(range(6))
    assert any("reward model was off" in text for text in report["limitations"])
    assert "converged" not in answer.out and "learning signal passed" in answer.out


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


TINY = "tiny.hidden_size=64 tiny.intermediate_size=128 rollout.max_new_tokens=8 runtime.threads=1"


def test_level_0_of_nemo_rl_that_trains_in_the_stand_in(proveout: Run, tmp_path: Path) -> None:
    answer = proveout("nemo-rl", "--level", "0", "--json", STANDIN_TRAIN=TINY, STANDIN_METRICS="none")
    assert verdicts(answer)["nemo-rl-L0-default"] == "Pass", why(answer)
    run = next((tmp_path / ".proveout/runs").glob("2*"))
    (metrics,) = run.glob("attempts/*-nemo-rl-L0-default/metrics.json")
    assert max(json.loads(metrics.read_text())["train/weight_delta"].values()) > 0


def test_level_1_of_verl_that_saves_resumes_and_trains_in_the_stand_in(
    proveout: Run, tmp_path: Path, verl_data: None
) -> None:
    """The second step comes from the bench loop's own checkpoint: its metrics begin at step 2."""
    words = ("--level", "1/lora", "--set", "reward_model=off", "--json")
    answer = proveout("verl", *words, STANDIN_TRAIN=TINY, STANDIN_METRICS="none")
    assert set(verdicts(answer).values()) == {"Pass"}, why(answer)
    run = next((tmp_path / ".proveout/runs").glob("2*"))
    (metrics,) = run.glob("attempts/*-verl-L1-resume/metrics.json")
    assert set(json.loads(metrics.read_text())["actor/grad_norm"]) == {"2"}
    assert list(run.glob("attempts/*checkpoints/bench/*"))


def test_a_dry_run_prints_the_commands_and_starts_nothing(proveout: Run, tmp_path: Path) -> None:
    answer = proveout("nemo-rl", "--level", "0", "--dry-run")
    assert answer.status == 0 and "uv run bash tests/functional/grpo_megatron.sh" in answer.out
    assert not (tmp_path / ".proveout").exists()


@pytest.mark.parametrize(("flag", "left"), [("--keep-going", "Fail"), ("--stop-at-first", "Incomplete")])
def test_what_follows_a_step_that_fails(proveout: Run, verl_data: None, flag: str, left: str) -> None:
    words = ("--level", "0", "--level", "3", "--set", "reward_model=off", "--json", flag)
    answer = proveout("verl", *words, STANDIN_FAULT="raises")
    found = verdicts(answer)
    assert answer.status == 1
    assert (found["verl-L0-default"], found["verl-L3-default"]) == ("Fail", left)
