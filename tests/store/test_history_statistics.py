"""What history says of numbers: regressions, thresholds, flaky steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.domain.metrics import MetricTable, Series
from proveout.judge.expressions import Data, check_all
from proveout.store.history.flaky import flaky
from proveout.store.history.records import MetricRow, StepRow
from proveout.store.history.regressions import State, of_metrics, of_seconds, recent
from proveout.store.history.robust import Rule, Worse, worse_of
from proveout.store.history.thresholds import suggest

RULE = Rule()


def metric(run: int, value: float, tag: str = "train/reward", **changes: object) -> MetricRow:
    row = {
        "run": f"r{run:03d}",
        "started": float(run),
        "model": "tiny",
        "change": "",
        "step": "bench-L0-grpo",
        "loop": "bench",
        "level": 0,
        "variant": "grpo",
        "verdict": "Pass",
        "command": "c",
        "recipe": "k",
        "tag": tag,
        "points": 3,
        "non_finite": 0,
        **dict.fromkeys(("first", "last", "tail", "median", "low", "high"), value),
        "machine": tag.startswith("timing/"),
    }
    return MetricRow(**{**row, **changes})


def step(run: int, verdict: str = "Pass", **changes: object) -> StepRow:
    row = {
        "run": f"r{run:03d}",
        "started": float(run),
        "model": "tiny",
        "change": "bridge abc",
        "state": "s1",
        "version": "1",
        "step": "bench-L0-grpo",
        "loop": "bench",
        "level": 0,
        "variant": "grpo",
        "verdict": verdict,
        "verdicts": (verdict,),
        "seconds": 10.0 + run % 3 * 0.1,
        "command": "c",
        "recipe": "k",
        "boundary": "",
        "cause": "judge.finite.nan" if verdict == "Fail" else "",
    }
    return StepRow(**{**row, **changes})


def states(rows: list[MetricRow]) -> dict[str, State]:
    return {change.tag: change.state for change in of_metrics(rows, RULE)}


STEADY = [metric(n, 0.5 + 0.01 * (n % 3)) for n in range(8)]


@pytest.mark.parametrize(
    ("newest", "state"),
    [(0.51, State.STEADY), (0.3, State.REGRESSED), (0.7, State.IMPROVED)],
)
def test_a_reward_regresses_downwards_only(newest: float, state: State) -> None:
    assert states([*STEADY, metric(9, newest)]) == {"train/reward": state}


def test_one_outlier_among_the_good_runs_hides_nothing() -> None:
    rows = [*STEADY[:4], metric(4, 50.0), *STEADY[5:], metric(9, 0.3)]
    assert states(rows) == {"train/reward": State.REGRESSED}


def test_failed_runs_are_no_baseline() -> None:
    bad = [metric(n, 0.0, verdict="Fail") for n in range(20)]
    assert states([*bad, metric(30, 0.5)]) == {"train/reward": State.UNDECIDED}


def test_another_command_is_another_baseline_and_another_seed_is_not() -> None:
    other = metric(9, 0.1, recipe="with lr=0", command="c9")
    found = of_metrics([*STEADY, other], RULE)
    assert {change.run: change.state for change in found}["r009"] is State.UNDECIDED
    assert states([*STEADY, metric(9, 0.1, command="seed 7")]) == {"train/reward": State.REGRESSED}


def test_a_series_that_is_lost_or_not_finite_has_regressed() -> None:
    assert states([*STEADY, metric(9, 0.5, non_finite=1)]) == {"train/reward": State.REGRESSED}
    found = states([*STEADY, metric(9, 1.0, tag="train/loss")])
    assert found == {"train/reward": State.REGRESSED, "train/loss": State.UNDECIDED}


def test_step_time_regresses_upwards_and_only_where_the_step_passed() -> None:
    rows = [step(n) for n in range(8)]
    slow = of_seconds([*rows, step(9, seconds=14.0)], RULE)
    assert [(change.state, change.run) for change in slow] == [(State.REGRESSED, "r009")]
    assert [change.state for change in of_seconds([*rows, step(9, seconds=7.0)], RULE)] == [State.IMPROVED]
    assert of_seconds([*rows, step(9, "Fail", seconds=14.0)], RULE) == []


def test_the_newest_run_of_each_recipe_and_the_good_ones_before_it_count() -> None:
    rows = [step(n, "Fail" if n in (5, 9) else "Pass") for n in range(10)] + [step(20, recipe="other")]
    assert recent(rows, Rule(last=3)) == {"r006", "r007", "r008", "r009", "r020"}


@pytest.mark.parametrize(
    ("tag", "way"),
    [
        ("train/reward", Worse.LOWER),
        ("train/loss", Worse.HIGHER),
        ("timing/train/total_step_time", Worse.HIGHER),
        ("performance/tokens_per_sec", Worse.LOWER),
        ("train/approx_entropy", Worse.EITHER),
    ],
)
def test_which_way_is_worse(tag: str, way: Worse) -> None:
    assert worse_of(tag) is way


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=5, max_size=20),
    tag=st.sampled_from(["train/reward", "train/loss", "train/approx_entropy"]),
)
def test_every_good_run_holds_the_check_that_it_suggests(values: list[float], tag: str) -> None:
    rows = [metric(n, value, tag) for n, value in enumerate(values)]
    for suggestion in suggest(rows, RULE):
        for value in values if suggestion.check else ():
            table = MetricTable({tag: Series.of({1: value})})
            (row,) = check_all(Data(table), [suggestion.check])
            assert row.passed, (suggestion.check, value)


def test_thresholds_need_enough_good_runs_and_finite_values() -> None:
    few = suggest(STEADY[:4] + [metric(n, 0.1, verdict="Fail") for n in range(9)], RULE)
    assert [(one.check, one.reason) for one in few] == [("", "4 good runs, 5 are needed")]
    (odd,) = suggest([*STEADY, metric(9, 0.5, non_finite=1)], RULE)
    assert (odd.check, "not finite" in odd.reason) == ("", True)


def test_only_the_last_good_runs_count_for_a_threshold() -> None:
    rows = [metric(n, 5.0) for n in range(10)] + [metric(20 + n, 0.5 + 0.01 * n) for n in range(6)]
    (one,) = suggest(rows, Rule(last=6))
    assert one.spread is not None
    assert (one.runs, one.spread.high) == (6, 0.55)
    assert one.check.startswith('median(data["train/reward"]) > 0.4')


def test_flaky_is_the_same_code_and_command_with_both_verdicts() -> None:
    (one,) = flaky([step(1), step(2, "Fail"), step(3), step(4, "Blocked"), step(5, "Incomplete")])
    assert one.verdicts == ("Pass", "Fail", "Pass")
    assert one.runs == ("r001", "r002", "r003")
    assert one.causes == ("judge.finite.nan",)
    assert flaky([step(1), step(2, "Fail", state="s2")]) == []
    assert flaky([step(1), step(2, "Fail", command="other")]) == []
    assert flaky([step(1), step(2, "Blocked")]) == []


def test_a_retry_with_another_verdict_in_one_run_is_flaky() -> None:
    (one,) = flaky([step(1, verdicts=("Fail", "Pass"))])
    assert one.failure_share == 0.5


def test_without_a_checkout_the_code_is_the_version_of_proveout() -> None:
    same = [step(1, state="", change=""), step(2, "Fail", state="", change="")]
    assert [one.change for one in flaky(same)] == ["proveout 1"]
    assert flaky([same[0], step(2, "Fail", state="", version="2")]) == []
