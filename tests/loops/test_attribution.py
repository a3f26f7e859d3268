"""``proveout run --against REV``: whose failure it is, told by real runs on both sides, in real git repositories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, call
from tests.loops import standins
from tests.plan.conftest import digest, git

pytestmark = pytest.mark.real
Run = Callable[..., Answer]
INIT = "src/megatron/bridge/__init__.py"
RAISES = "def provide():\n    raise AttributeError('GPTModelProvider has no attribute finalize')\n"
SOMETIMES = """
import os
from pathlib import Path


def provide():
    runs = Path(os.environ["STANDIN_COUNTER"])
    number = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (number + 1))
    if number % 2 == 0:
        raise RuntimeError("the port was taken")
"""


@pytest.fixture
def compared(stand_ins: dict[str, str], recording: Path, tmp_path: Path, verl_data: None) -> Run:
    """``proveout run --against HEAD`` of one loop's level 0, with words of the Bridge's working tree."""
    bridge = Path(stand_ins["bridge"])

    def run(*words: str, loop: str = "verl", fault: str = "", change: str = "", **more: str) -> Answer:
        (bridge / INIT).write_text(change)
        env = {**standins.environment(tmp_path / "bin", recording, *([fault] if fault else [])), **more}
        trees = ("--bridge", str(bridge), f"--{loop}", stand_ins[loop], "--loop", loop, "--level", "0")
        off = ("--set", "reward_model=off") if loop == "verl" else ()
        before = digest(bridge)
        env |= {"STANDIN_COUNTER": str(tmp_path / "counter"), "TORCH_CUDA_ARCH_LIST": "9.0"}
        answer = call("run", *trees, *off, "--against", "HEAD", "--json", *words, cwd=tmp_path, env=env)
        assert digest(bridge) == before
        return answer

    return run


def the_answer(answer: Answer) -> Any:
    (only,) = json.loads(answer.out)["attributions"]
    return only


def sides(found: Any) -> list[tuple[str, str]]:
    return [(run["side"], run["verdict"]) for run in found["runs"]]


def run_of(tmp_path: Path) -> Path:
    return next((tmp_path / ".proveout/runs").glob("2*"))


def test_what_only_the_change_shows_is_new(compared: Run, tmp_path: Path) -> None:
    answer = compared(change=RAISES)
    found = the_answer(answer)
    assert answer.status == 1 and found["answer"] == "new failure"
    assert sides(found) == [("change", "Fail"), ("change", "Fail"), ("base", "Pass"), ("base", "Pass")]
    assert "with the change 0 of 2 passed (Fail), on bridge" in found["summary"]
    run = run_of(tmp_path)
    assert all((run / ran["directory"] / "run.log").exists() for ran in found["runs"])
    log = (run / found["runs"][-1]["directory"] / "run.log").read_text()
    assert f"against/tree-{found['commit'][:12]}/src/megatron/bridge" in log
    text = (run / "report.txt").read_text()
    assert f"(new failure against bridge {found['commit'][:9]})" in text.splitlines()[0]
    assert "\nAttribution:\n- verl-L0-default: new failure: " in text
    assert "the commit before it passes" in text
    events = [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]
    assert events.count("beside_started") == 3 and events[-1] == "against_answered"


def test_what_the_base_shows_too_was_there_before(compared: Run, stand_ins: dict[str, str]) -> None:
    bridge = Path(stand_ins["bridge"])
    (bridge / INIT).write_text(RAISES)
    git(bridge, "commit", "-q", "-a", "-m", "two")
    found = the_answer(compared(change=RAISES + "X = 1\n"))
    assert found["answer"] == "pre-existing"
    assert sides(found) == [("change", "Fail"), ("base", "Fail")]


def test_a_base_that_fails_otherwise_decides_nothing(compared: Run, stand_ins: dict[str, str]) -> None:
    bridge = Path(stand_ins["bridge"])
    (bridge / INIT).write_text("def provide():\n    raise KeyError('num_layers')\n")
    git(bridge, "commit", "-q", "-a", "-m", "two")
    found = the_answer(compared(change=RAISES))
    assert found["answer"] == "undecided" and "otherwise: KeyError: 'num_layers'" in found["summary"]


def test_what_comes_and_goes_is_flaky(compared: Run) -> None:
    found = the_answer(compared("--repeat", "3", change=SOMETIMES))
    assert found["answer"] == "flaky"
    assert sides(found)[:2] == [("change", "Fail"), ("change", "Pass")]
    assert "with the change 1 of 2 passed (Fail)" in found["summary"] and "3 of 3 passed" in found["summary"]


def test_what_stops_both_sides_before_the_build_is_the_environment(compared: Run) -> None:
    answer = compared(fault="no-gpus", change="X = 1\n")
    found = the_answer(answer)
    assert answer.status == 3 and found["answer"] == "environment"
    assert sides(found) == [("change", "Blocked"), ("base", "Blocked")]


def test_training_that_only_the_change_breaks_is_new(compared: Run) -> None:
    """Both sides really train: the change puts a NaN into the bench loop's loss."""
    settings = 'SETTINGS = ("fault.nan_loss_at_step=2",)\n'
    words = "tiny.hidden_size=64 tiny.intermediate_size=128 rollout.max_new_tokens=8 runtime.threads=1"
    answer = compared("--repeat", "1", loop="nemo-rl", change=settings, STANDIN_TRAIN=words)
    found = the_answer(answer)
    assert found["answer"] == "new failure" and sides(found) == [("change", "Fail"), ("base", "Pass")]
    assert "judge.finite.non-finite" in found["runs"][0]["findings"]


def test_resume_goes_on_where_the_comparison_was_cut_off(
    compared: Run, recording: Path, tmp_path: Path
) -> None:
    found = the_answer(compared(change=SOMETIMES))
    run, ran = run_of(tmp_path), (tmp_path / "counter").read_text()
    (run / "against.json").unlink()
    (run / found["runs"][-1]["directory"] / "result.json").unlink()
    env = {**standins.environment(tmp_path / "bin", recording), "STANDIN_COUNTER": str(tmp_path / "counter")}
    again = call("resume", "--json", cwd=tmp_path, env=env)
    assert the_answer(again)["summary"] == found["summary"]
    assert (tmp_path / "counter").read_text() == ran
    assert again.status == 1


def test_a_resumed_save_is_made_again_on_the_base(
    prove_against: Callable[..., Any], stand_ins: dict[str, str]
) -> None:
    found = prove_against("verl", 1, "restarts", variant="lora")
    assert found.answer.value == "pre-existing"
    assert [run.verdict.value for run in found.runs] == ["Fail", "Fail"]


def test_without_a_checkout_or_a_commit_there_is_nothing_to_compare_with(
    compared: Run, tmp_path: Path
) -> None:
    nothing = call("run", "--against", "HEAD", cwd=tmp_path)
    assert nothing.status == 2 and "nothing is under test" in nothing.err
    wrong = compared("--against", "no-such-branch")
    assert wrong.status == 2 and "is no commit of this checkout" in wrong.err
    assert not (tmp_path / ".proveout/runs").exists()
