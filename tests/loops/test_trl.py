"""Loop trl: what it plans, and real TRL runs, whole and broken, judged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer
from tests.stack import python_of

from proveout import loops
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest


@pytest.fixture(autouse=True)
def _stacks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVEOUT_STACKS", str(tmp_path_factory.mktemp("stacks")))


def context(**more: Any) -> LoopContext:
    return LoopContext(python="python", options={"python": "/usr/bin/env"}, **more)


def steps(level: int, variant: str = "default", **more: Any) -> list[Any]:
    request = LevelRequest(loop="trl", level=level, requested=True, reason="", variant=variant)
    return list(loops.get("trl").steps(request, context(**more)))


def test_a_variant_that_resumes_brings_the_ones_that_it_needs() -> None:
    found = [step.id for step in steps(1, "lora-resume")]
    assert found == ["trl-L1-lora", "trl-L1-lora-save", "trl-L1-lora-resume"]


def test_a_given_checkpoint_is_taken_without_a_warm_start() -> None:
    own, given = steps(0)[0], steps(0, model="/models/mine")[0]
    assert "warm_steps=60" in own.command.argv and "model=/models/mine" in given.command.argv
    assert not any(word.startswith("warm_steps") for word in given.command.argv)
    assert any("tiny" in text for text in own.limitations)
    assert not any("tiny" in text for text in given.limitations)


def test_the_users_words_come_last_and_set_the_planned_steps() -> None:
    step = steps(6, overrides=("max_steps=7",))[0]
    assert step.command.argv[-1] == "max_steps=7" and step.planned_steps == 7


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="did you mean 'sft-save'"):
        steps(1, "sft-sav")
    with pytest.raises(UsageError, match="no option 'pyton'; did you mean 'python'"):
        loops.get("trl").check(LoopContext(python="python", options={"pyton": "x"}))
    with pytest.raises(BlockedError, match="no environment to run in") as blocked:
        loops.get("trl").check(LoopContext(python="python"))
    assert "proveout stack install trl" in blocked.value.remedy


Run = Callable[..., dict[str, Any]]
stack = pytest.mark.stack("trl")
long = pytest.mark.skipif(
    os.environ.get("PROVEOUT_TEST_STACKS") != "1", reason="several runs of TRL: make test-stacks"
)


@pytest.fixture
def run(proveout: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A real run of loop trl in its stack's environment; its report."""
    monkeypatch.undo()
    python = python_of("trl")

    def start(*words: str, status: int) -> dict[str, Any]:
        answer = proveout("run", "--loop", "trl", "--set", f"trl:python={python}", "--json", *words)
        assert answer.status == status, answer.out + answer.err
        return dict(answer.json)

    return start


def deciding(report: dict[str, Any]) -> str:
    return json.dumps([step["attempts"][-1]["findings"] for step in report["steps"] if step["attempts"]])


@stack
@pytest.mark.real
def test_level_0_passes_on_evidence_of_trl_itself(run: Run) -> None:
    report = run("--level", "0", status=0)
    held = json.dumps(report["evidence"])
    assert "train/weight_delta" in held and "train/trainable_params = 19456" in held
    assert "trl/__init__.py" in held


@long
@stack
@pytest.mark.real
def test_a_reward_function_that_raises_is_a_fail_with_its_own_line(run: Run) -> None:
    report = run("--level", "0", "reward=raising", "warm_steps=1", status=1)
    assert "ZeroDivisionError" in json.dumps(report)


@stack
@pytest.mark.real
def test_updates_that_end_in_nan_are_a_fail_that_names_series_and_step(run: Run) -> None:
    report = run("--level", "0/sft", "lr=1e30", status=1)
    assert "nan" in deciding(report).lower() and "step 2" in deciding(report)


@stack
@pytest.mark.real
def test_data_without_the_prompt_column_is_blocked(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text('{"question": "What is 1+1?", "answer": "2"}\n' * 64)
    report = run("--level", "0", f"data={data}", "warm_steps=1", status=3)
    assert "prompt" in json.dumps(report["steps"])


@long
@stack
@pytest.mark.real
def test_another_adapter_rank_at_resume_is_a_fail_with_the_shapes(run: Run) -> None:
    report = run("--level", "1/lora-resume", "warm_steps=1", status=0)
    saved = Path(report["run"]["directory"]) / "attempts" / "trl-L1-lora-checkpoint"
    broken = run("--level", "0/grpo", f"resume={saved}", "lora_rank=8", "warm_steps=1", status=1)
    assert "size mismatch" in json.dumps(broken["steps"])
