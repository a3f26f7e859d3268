"""The main job, end to end: real GRPO runs of the bench loop, judged from outside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Answer, call

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def default_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    """``proveout run`` without arguments, once."""
    here = tmp_path_factory.mktemp("default")
    return call("run", cwd=here), here


def run_of(here: Path) -> Path:
    (only,) = (here / ".proveout" / "runs").iterdir()
    return only


def series(attempt: Path, tag: str) -> list[float]:
    points = json.loads((attempt / "metrics.json").read_text())[tag]
    return [points[step] for step in sorted(points, key=int)]


def test_default_run_passes_levels_0_and_6_of_bench(default_run: tuple[Answer, Path]) -> None:
    answer, _ = default_run
    assert answer.status == 0, answer.out + answer.err
    assert answer.out.startswith("Result: Pass - ")
    assert "bench level 0 (grpo), bench level 6 (grpo)" in answer.out
    assert "learning signal passed" in answer.out
    assert "converged" not in answer.out


def test_report_names_what_was_not_run(default_run: tuple[Answer, Path]) -> None:
    out = default_run[0].out
    for line in (
        "NeMo-RL loop: Not requested - ",
        "verl loop: Not requested - ",
        "Bridge-side checks: Not requested",
    ):
        assert f"- {line}" in out


def test_reward_rises_and_policy_and_generation_agree(default_run: tuple[Answer, Path]) -> None:
    attempt = run_of(default_run[1]) / "attempts" / "02-bench-L6-grpo"
    reward = series(attempt, "train/reward")
    assert reward[0] < 0.35
    assert max(reward[-10:]) > 0.8
    assert max(series(attempt, "train/token_mult_prob_error")) < 1.0001


def test_run_directory_holds_what_the_blueprint_says(default_run: tuple[Answer, Path]) -> None:
    run = run_of(default_run[1])
    assert {"plan.json", "events.jsonl", "report.txt", "report.md", "report.json"} <= {
        p.name for p in run.iterdir()
    }
    for attempt in (run / "attempts").iterdir():
        names = {
            "command.sh",
            "env.json",
            "run.log",
            "metrics.json",
            "result.json",
            "findings.json",
            "exit.json",
        }
        assert names <= {path.name for path in attempt.iterdir()}


def test_report_and_runs_read_the_finished_run(default_run: tuple[Answer, Path]) -> None:
    answer, here = default_run
    again = call("report", cwd=here)
    assert (again.status, again.out) == (0, answer.out)
    document = call("report", "--format", "json", cwd=here).json
    assert document["result"] == "Pass"
    assert [(s["level"], s["verdict"], len(s["attempts"])) for s in document["steps"]] == [
        (0, "Pass", 1),
        (6, "Pass", 1),
    ]
    assert call("runs", "--json", cwd=here).json[0]["result"] == "Pass"


def test_a_finished_run_is_in_the_history_before_anybody_asks(default_run: tuple[Answer, Path]) -> None:
    run = run_of(default_run[1])
    with closing(sqlite3.connect(run.parents[1] / "history.sqlite")) as index:
        assert index.execute("SELECT id, verdict FROM runs").fetchall() == [(run.name, "Pass")]
        steps = index.execute("SELECT loop, level, verdict FROM steps ORDER BY level").fetchall()
        assert steps == [("bench", 0, "Pass"), ("bench", 6, "Pass")]
        assert index.execute("SELECT count(*) FROM metrics").fetchone()[0] > 20


def test_resume_of_a_finished_run_runs_nothing_again(default_run: tuple[Answer, Path]) -> None:
    here = default_run[1]
    answer = call("resume", cwd=here)
    assert answer.status == 0
    assert len(list((run_of(here) / "attempts").iterdir())) == 2


def test_same_seed_gives_the_same_numbers(default_run: tuple[Answer, Path], tmp_path: Path) -> None:
    assert call("run", "--level", "6", cwd=tmp_path).status == 0
    first = run_of(default_run[1]) / "attempts" / "02-bench-L6-grpo"
    second = run_of(tmp_path) / "attempts" / "01-bench-L6-grpo"
    for tag in ("train/reward", "train/loss", "train/grad_norm"):
        assert series(first, tag) == series(second, tag)


def test_learning_rate_0_fails_both_levels_as_nothing_moves(proveout: Callable[..., Answer]) -> None:
    answer = proveout("run", "lr=0", "--json")
    assert answer.status == 1
    for step in answer.json["steps"]:
        assert step["verdict"] == "Fail"
        said = " ".join(f["what"] for f in step["attempts"][-1]["findings"] if f["severity"] == "error")
        assert "nothing moved" in said


def test_nan_loss_fails_both_levels_naming_metric_and_step(proveout: Callable[..., Answer]) -> None:
    answer = proveout("run", "fault.nan_loss_at_step=3", "--json")
    assert answer.status == 1
    for step in answer.json["steps"]:
        assert step["verdict"] == "Fail"
        places = [f.get("where", {}) for f in step["attempts"][-1]["findings"] if f["severity"] == "error"]
        assert any(where.get("metric") == "train/loss" and where.get("step") == 3 for where in places)


def test_an_early_exit_0_is_no_pass(proveout: Callable[..., Answer]) -> None:
    answer = proveout("run", "--level", "0", "stop_after_step=2", "--json")
    assert answer.status == 1
    assert "2 of 3" in json.dumps(answer.json["steps"]) or "step 2" in json.dumps(answer.json["steps"])
