"""``proveout history tests`` over dated files: of real sessions, and of the other fixture's schema."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proveout.cli.main import run
from proveout.pytest_plugin.history.files import Session, Test, load
from proveout.pytest_plugin.history.render import sparkline
from proveout.pytest_plugin.history.trend import Rule, State, Worse, trends, worse_of

KEY = "test_hf_ray_policy::test_lm_policy_generation"


def write(directory: Path, values: list[dict[str, Any]], exit_status: int = 0) -> None:
    """Dated files as NeMo-RL's own fixture writes them, one a minute."""
    directory.mkdir(parents=True, exist_ok=True)
    for minute, metrics in enumerate(values):
        content = {
            "exit_status": exit_status,
            "git_commit": "778d288bb5d2edfd3eec4d07bb7dffffad5ef21b",
            "start_time": f"2025-03-24 23:{minute:02d}:39",
            "metrics": {KEY: metrics},
            "gpu_types": ["NVIDIA H100 80GB HBM3"],
            "coverage": 24.5,
        }
        (directory / f"20250324_23{minute:02d}39.json").write_text(json.dumps(content))


def judge(directory: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    status = run(["history", "tests", str(directory), "--json", "--fail-on-regression", *options])
    return status, json.loads(capsys.readouterr().out)


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {trend["metric"]: trend["state"] for trend in answer["trends"]}


STEADY = [{"loss": 1.0 + 0.001 * (n % 3), "_elapsed": 10.0 + (n % 4)} for n in range(10)]


def test_steady_metrics_pass(tmp_path, capsys):
    write(tmp_path, STEADY)
    status, answer = judge(tmp_path, capsys)

    assert status == 0
    assert states(answer) == {"loss": "steady", "_elapsed": "steady"}


@pytest.mark.parametrize(
    ("newest", "metric", "state"),
    [
        ({"loss": 1.5, "_elapsed": 10.0}, "loss", "regressed"),
        ({"loss": 0.5, "_elapsed": 10.0}, "loss", "improved"),
        ({"loss": 1.0, "_elapsed": 60.0}, "_elapsed", "regressed"),
        ({"loss": math.nan, "_elapsed": 10.0}, "loss", "regressed"),
        ({"_elapsed": 10.0}, "loss", "regressed"),
    ],
)
def test_a_metric_that_moves_is_found(tmp_path, capsys, newest, metric, state):
    write(tmp_path, [*STEADY, newest])
    status, answer = judge(tmp_path, capsys)

    assert states(answer)[metric] == state
    assert status == (1 if state == "regressed" else 0)


def test_one_wild_earlier_value_does_not_hide_a_regression(tmp_path, capsys):
    write(tmp_path, [*STEADY, {"loss": 1e6, "_elapsed": 10.0}, {"loss": 1.5, "_elapsed": 10.0}])
    assert states(judge(tmp_path, capsys)[1])["loss"] == "regressed"


def test_too_few_sessions_decide_nothing_and_that_is_no_pass(tmp_path, capsys):
    write(tmp_path, STEADY[:3])
    status, answer = judge(tmp_path, capsys)

    assert status == 3
    assert answer["verdict"] == "Blocked"
    assert set(states(answer).values()) == {"undecided"}


def test_a_metric_of_unknown_direction_is_held_both_ways_unless_told(tmp_path, capsys):
    write(tmp_path, [*({"entropy": 1.0} for _ in range(8)), {"entropy": 2.0}])

    assert states(judge(tmp_path, capsys)[1]) == {"entropy": "regressed"}
    assert states(judge(tmp_path, capsys, "--worse", "entropy=lower")[1]) == {"entropy": "improved"}


def test_metric_selects_and_the_table_says_why(tmp_path, capsys):
    write(tmp_path, [*STEADY, {"loss": 1.5, "_elapsed": 60.0}])
    status = run(["history", "tests", str(tmp_path), "--metric", "lo*"])
    shown = capsys.readouterr().out

    assert status == 0
    assert "1.5, median 1.001, band 0.1001" in shown
    assert "_elapsed" not in shown
    assert "Fail: 1 regressed of 1 decided, 0 undecided" in shown


def test_a_test_that_used_to_pass_is_a_regression(project, capsys):
    project.write("tests/unit/test_a.py", "def test_a(tracker): tracker.track('x', 1)\n")
    project.run()
    project.write(
        "tests/unit/test_a.py", "def test_a(tracker):\n    tracker.track('x', 1)\n    assert False\n"
    )
    project.run()

    status, answer = judge(project.dated, capsys)

    assert status == 1
    [outcome] = [trend for trend in answer["trends"] if trend["metric"] == "(outcome)"]
    assert (outcome["state"], outcome["reason"]) == ("regressed", "passed before, failed now")


def test_values_of_failed_sessions_are_no_baseline():
    past = [
        Session(file=f"{n}", start_time=f"{n}", tests={"t": Test(outcome="failed", metrics={"loss": 9.0})})
        for n in range(5)
    ]
    newest = Session(file="9", start_time="9", tests={"t": Test(outcome="passed", metrics={"loss": 1.0})})

    found = {trend.metric: trend.state for trend in trends([*past, newest], Rule())}

    assert found == {"(outcome)": State.IMPROVED, "loss": State.UNDECIDED}


def test_a_file_that_is_cut_short_is_named_and_the_others_are_read(tmp_path, capsys):
    write(tmp_path, STEADY)
    (tmp_path / "20250324_230000.json").write_text('{"metrics": {')
    status = run(["history", "tests", str(tmp_path), "--fail-on-regression"])

    assert status == 0
    assert "20250324_230000.json: left out, it is no results file" in capsys.readouterr().err


def test_files_are_ordered_by_start_time_not_by_name(tmp_path):
    write(tmp_path, STEADY[:2])
    (tmp_path / "20250324_230039.json").rename(tmp_path / "zzz.json")
    assert [session.file for session in load(tmp_path).sessions] == ["zzz.json", "20250324_230139.json"]


def test_nan_survives_the_way_through_the_file(project):
    project.write("tests/unit/test_a.py", "def test_a(tracker): tracker.track('loss', float('nan'))\n")
    project.run()
    [session] = load(project.dated).sessions
    [test] = session.tests.values()
    assert math.isnan(test.metrics["loss"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no such directory of dated results files"),
        ([".", "--worse", "x"], "needs NAME=higher"),
        (["."], "holds no results file"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    if "--worse" in arguments:
        write(tmp_path, STEADY)
    assert run(["history", "tests", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_history_names_the_nearest(capsys):
    assert run(["history", "test"]) == 2
    assert "did you mean 'tests'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("metric", "worse"),
    [
        ("_elapsed", Worse.HIGHER),
        ("memory_after_exponentiating", Worse.HIGHER),
        ("avg_prob_mult_error", Worse.HIGHER),
        ("train/reward", Worse.LOWER),
        ("tokens_throughput", Worse.LOWER),
        ("mean_lps", Worse.EITHER),
    ],
)
def test_the_way_a_metric_gets_worse_is_read_from_its_name(metric, worse):
    assert worse_of(metric) is worse


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.none(), max_size=30))
@example([1.7976931348623157e308, -1e308])
def test_a_sparkline_has_a_mark_for_each_value_shown(values):
    line = sparkline(values)
    assert len(line) == min(20, len(values))
    assert [mark == "!" for mark in line] == [value is None for value in values[-20:]]
