"""verl's own trainer on this machine's CPU: a smoke that passes, and two runs of one seed that are the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Answer
from tests.stack import python_of

pytestmark = [pytest.mark.real, pytest.mark.stack("verl-cpu")]
CPU = ("run", "--loop", "verl", "--platform", "cpu", "--json")
SERIES = ("actor/loss", "actor/grad_norm", "critic/rewards/mean", "response_length/mean")


long = pytest.mark.skipif(
    os.environ.get("PROVEOUT_TEST_STACKS") != "1", reason="several runs of minutes: make test-stacks"
)


def run(proveout: Callable[..., Answer], *words: str) -> dict[str, Any]:
    python_of("verl-cpu")
    answer = proveout(*CPU, *words)
    assert answer.status == 0, answer.out[-4000:] + answer.err[-2000:]
    report: dict[str, Any] = answer.json
    return report


def attempts(directory: Path) -> list[Path]:
    return sorted(directory.glob(".proveout/runs/*/attempts/*/metrics.json"))


def test_level_0_passes_with_weights_that_are_right_and_moved(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    report = run(proveout, "--level", "0")
    assert report["result"] == "Pass"
    held = json.dumps(report["evidence"])
    assert "the first transfer brought the weights of the original checkpoint exactly" in held
    assert any("no vLLM" in text for text in report["limitations"])
    (metrics,) = attempts(tmp_path)
    transfers = [json.loads(line) for line in (metrics.parent / "refit.jsonl").read_text().splitlines()]
    assert [item["version"] for item in transfers] == [0, 1, 2]
    assert transfers[0]["largest_from_original"] == 0.0 < transfers[1]["change"]


@long
def test_two_runs_of_one_seed_have_the_same_rewards_and_losses_and_another_seed_has_others(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    for seed in ("3", "3", "4"):
        run(proveout, "--level", "0/grpo", "--seed", seed)
    one, again, other = (json.loads(path.read_text()) for path in attempts(tmp_path))
    for tag in SERIES:
        # Rows come back in the order in which requests end, and sums of floats depend on it in the last digits.
        assert again[tag] == pytest.approx(one[tag], rel=1e-4, abs=1e-6), tag
    assert one["critic/rewards/mean"] == again["critic/rewards/mean"]
    assert one["actor/loss"] != pytest.approx(other["actor/loss"], rel=1e-2)


@long
def test_save_resume_sizes_and_learning_pass(proveout: Callable[..., Answer]) -> None:
    report = run(proveout, "--level", "1,2,5")
    assert {step["verdict"] for step in report["steps"]} <= {"Pass", "Skipped"}
