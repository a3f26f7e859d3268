"""The levels of loop bench: their steps, what overrides do to them, and level 1 on sound and broken runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer

from proveout.domain.errors import UsageError
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Step
from proveout.flow.warm import VARIABLE
from proveout.judge.registry import CRITERIA
from proveout.loops.bench import LOOP
from proveout.loops.bench.table import table
from proveout_bench.config.resolve import resolve


def steps(level: int, variant: str = "default", *overrides: str) -> dict[str, Step]:
    request = LevelRequest(loop="bench", level=level, requested=True, reason="asked", variant=variant)
    context = LoopContext(python="python", overrides=overrides)
    return {step.coverage.variant: step for step in LOOP.steps(request, context)}


def test_level_0_runs_grpo_unless_another_variant_is_named() -> None:
    assert list(steps(0)) == ["grpo"]
    assert list(steps(0, "ppo")) == ["ppo"]
    assert steps(0, "ppo")["ppo"].command.argv[3] == "ppo"
    assert set(steps(0, "all")) == {"grpo", "ppo", "sft"}
    with pytest.raises(UsageError, match="did you mean 'sft'"):
        steps(0, "stf")


def test_whoever_asks_for_the_resume_gets_what_it_needs_first() -> None:
    assert list(steps(1, "lora-resume")) == list(steps(1)) == ["lora", "lora-save", "lora-resume"]
    resume = steps(1)["lora-resume"]
    assert resume.needs == (steps(1)["lora"].id, steps(1)["lora-save"].id)
    assert list(steps(1, "lora")) == ["lora"]


@pytest.mark.parametrize(
    ("overrides", "planned"),
    [((), (3, 1, 3)), (("max_steps=5",), (5, 1, 5)), (("max_steps=5", "max_steps=4"), (4, 1, 4))],
)
def test_planned_steps_follow_overrides(overrides: tuple[str, ...], planned: tuple[int, ...]) -> None:
    assert tuple(step.planned_steps for step in steps(1, "default", *overrides).values()) == planned


def test_every_row_is_a_run_that_the_loop_accepts_and_criteria_that_the_judge_knows(tmp_path: Any) -> None:
    assert len({row.id for row in table().steps}) == len(table().steps)
    for level in LOOP.levels:
        found = steps(level, "all")
        for step in found.values():
            words = step.command.at(str(tmp_path)).argv[4:]
            resolve([word for word in words if not word.startswith("resume=")], step.command.argv[3])
            assert {criterion.kind for criterion in step.criteria} <= CRITERIA.keys()
            assert set(step.needs) <= {other.id for other in found.values()}
            for criterion in step.criteria:
                named = {criterion.params[key] for key in ("baseline", "saved") if key in criterion.params}
                assert named <= set(step.needs)


def told(answer: Answer) -> dict[str, tuple[str, str]]:
    """Verdict and findings of each step, by variant."""
    return {
        step["variant"]: (
            step["verdict"],
            json.dumps(
                [f["id"] for a in step["attempts"] for f in a["findings"] if f["severity"] == "error"]
            ),
        )
        for step in answer.json["steps"]
    }


@pytest.mark.real
def test_a_resume_that_silently_starts_over_fails(proveout: Callable[..., Answer], tmp_path: Path) -> None:
    """Its three attempts start from one process that imported once, which no environment keeps afterwards."""
    words = ("--level", "1", "fault.resume_fresh=true", "--state-dir", str(tmp_path))
    answer = proveout("run", *words, "--json")
    logs = [log.read_text() for log in tmp_path.glob("runs/*/attempts/*/run.log")]
    assert len(logs) == 3
    assert all("Warm start: forked from process" in log for log in logs)
    assert VARIABLE not in os.environ
    assert answer.status == 1
    found = told(answer)
    assert [found[name][0] for name in ("lora", "lora-save", "lora-resume")] == ["Pass", "Pass", "Fail"]
    for finding in ("resume_parity.started-over", "resume_parity.no-proof"):
        assert finding in found["lora-resume"][1]


@pytest.mark.real
def test_a_frozen_adapter_fails_level_1(proveout: Callable[..., Answer]) -> None:
    answer = proveout("run", "--level", "1/lora", "fault.adapter_frozen=true", "--json")
    assert answer.status == 1
    verdict, findings = told(answer)["lora"]
    assert verdict == "Fail"
    assert "weights_moved.still" in findings
