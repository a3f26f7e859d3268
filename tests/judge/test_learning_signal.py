"""A learning signal is told from a run in which nothing was learned."""

import random

import pytest

from proveout.domain.finding import Severity
from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict
from proveout.judge import judge

STEPS = range(1, 21)


def noisy(start, end, spread=0.02, seed=1):
    generator = random.Random(seed)
    return {s: start + (end - start) * (s - 1) / 19 + generator.uniform(-spread, spread) for s in STEPS}


def healthy(**different):
    tables = {
        "train/reward": noisy(0.2, 0.8, 0.1),
        "train/loss": noisy(0.01, -0.01, 0.05, 2),
        "train/grad_norm": noisy(1.2, 0.9, 0.3, 3),
        "train/lr": dict.fromkeys(STEPS, 1e-3),
        "train/approx_entropy": noisy(3.0, 1.5, 0.1, 4),
        "train/kl_penalty": noisy(0.05, 0.3, 0.02, 5),
        "train/token_mult_prob_error": noisy(1.0001, 1.0001, 0.0001, 6),
        "train/gen_kl_error": noisy(1e-4, 1e-4, 1e-5, 7),
        "train/probs_ratio": dict.fromkeys(STEPS, 1.0),
        "train/advantages/max": noisy(1.0, 1.0, 0.2, 8),
        "train/advantages/min": noisy(-1.0, -1.0, 0.2, 9),
    }
    for name, points in different.items():
        tag = next(t for t in tables if t.split("/", 1)[1].replace("/", "_") == name)
        tables[tag] = points
    return tables


def judged(attempt, tables, **params):
    loop = params.pop("loop", "bench")
    log = params.pop("log", "done\n")
    criteria = (Criterion(kind="learning_signal", params=params),)
    return judge(attempt(tables, planned=20, criteria=criteria, loop=loop, log=log))


def errors(judgement):
    return [
        f.id.removeprefix("judge.learning_signal.")
        for f in judgement.findings
        if f.severity is Severity.ERROR
    ]


def warnings(judgement):
    return [
        f.id.removeprefix("judge.learning_signal.")
        for f in judgement.findings
        if f.severity is Severity.WARNING
    ]


def test_a_run_that_learns_passes_with_a_statement_of_confidence(attempt):
    judgement = judged(attempt, healthy())
    assert judgement.verdict is Verdict.PASS
    assert judgement.findings == ()
    said = [cite.what for cite in judgement.results[-1].held if "Mann-Kendall" in cite.what]
    assert len(said) == 1
    assert "train/reward: rises from" in said[0]
    assert "99% interval" in said[0]


def test_one_good_last_step_is_no_trend(attempt):
    flat = noisy(0.3, 0.3, 0.05) | {20: 5.0}
    assert errors(judged(attempt, healthy(reward=flat))) == ["trend"]


def test_a_falling_reward_fails(attempt):
    assert errors(judged(attempt, healthy(reward=noisy(0.8, 0.2)))) == ["trend"]


def test_without_reward_the_loss_must_fall(attempt):
    sft = {"train/loss": noisy(5.0, 2.0, 0.2), "train/grad_norm": noisy(1, 1, 0.2)}
    assert judged(attempt, sft).verdict is Verdict.PASS
    sft["train/loss"] = noisy(2.0, 2.1, 0.2)
    assert errors(judged(attempt, sft)) == ["trend"]


def test_too_few_values_show_no_trend(attempt):
    tables = {tag: {s: v for s, v in points.items() if s > 15} for tag, points in healthy().items()}
    assert errors(judged(attempt, tables)) == ["too-short"]


def test_a_trend_can_be_asked_for_by_tag_and_a_good_level_is_enough(attempt):
    flat = healthy(reward=noisy(0.97, 0.97))
    assert errors(judged(attempt, flat, trend={"train/reward": "not-down"})) == []
    assert errors(judged(attempt, flat, trend={"reward": "up"})) == ["trend"]
    good = {"reward": {"direction": "up", "at_least": 0.9}}
    assert errors(judged(attempt, flat, trend=good)) == []
    assert errors(judged(attempt, flat, trend={"train/nothing": "up"})) == ["trend-missing"]


@pytest.mark.parametrize(
    ("different", "finding"),
    [
        ({"lr": dict.fromkeys(STEPS, 0.0)}, "no-learning-rate"),
        ({"grad_norm": dict.fromkeys(STEPS, 0.0)}, "zero-gradients"),
        ({"grad_norm": noisy(1, 1) | {7: 0.0, 8: 0.0}}, "zero-gradients"),
        ({"grad_norm": noisy(1, 1) | dict.fromkeys((2, 5, 8, 11, 14, 17), 0.0)}, "zero-gradients"),
        ({"reward": dict.fromkeys(STEPS, 0.5)}, "constant-reward"),
        ({"approx_entropy": dict.fromkeys(STEPS, 2.3025850929)}, "constant-entropy"),
        ({"loss": dict.fromkeys(STEPS, 0.123456789)}, "constant-loss"),
        (
            {"advantages_max": dict.fromkeys(STEPS, 0.0), "advantages_min": dict.fromkeys(STEPS, 0.0)},
            "degenerate-groups",
        ),
        ({"kl_penalty": noisy(0.1, 0.1) | {20: 50.0}}, "kl"),
        ({"grad_norm": noisy(1, 1) | {11: 1e7}}, "grad_norm"),
        ({"grad_norm": noisy(1, 1) | dict.fromkeys(range(15, 21), 500.0)}, "growth"),
        ({"token_mult_prob_error": noisy(1.0, 1.0) | {9: 1.3}}, "prob_error"),
        ({"gen_kl_error": noisy(1e-4, 1e-4, 0) | {9: 0.55}}, "mismatch"),
        ({"probs_ratio": dict.fromkeys(STEPS, 1.0) | {4: 0.3}}, "ratio"),
    ],
)
def test_a_broken_run_fails_for_the_right_reason(attempt, different, finding):
    judgement = judged(attempt, healthy(**different))
    assert finding in errors(judgement)
    assert judgement.verdict is Verdict.FAIL
    assert all(f.evidence or f.where.file for f in judgement.findings)


def test_entropy_that_collapses_for_nothing_fails(attempt):
    collapsed = {s: 3.0 * 0.6**s for s in STEPS}
    assert errors(judged(attempt, healthy(approx_entropy=collapsed))) == []
    assert warnings(judged(attempt, healthy(approx_entropy=collapsed))) == ["entropy-collapse"]
    flat = healthy(approx_entropy=collapsed, reward=noisy(0.3, 0.3, 0.05))
    assert "entropy-collapse" in errors(judged(attempt, flat))


def test_no_gradient_is_left_once_everything_is_solved(attempt):
    solved = noisy(0.2, 0.9, 0.01) | dict.fromkeys((18, 19, 20), 1.0)
    judgement = judged(attempt, healthy(reward=solved, grad_norm=noisy(1, 1) | {19: 0.0, 20: 0.0}))
    assert errors(judgement) == []
    assert warnings(judgement) == ["zero-gradient"]


def test_an_outlier_that_is_not_large_is_no_alarm(attempt):
    tight = {s: 1.0 + 0.0001 * (s % 3) for s in STEPS} | {10: 1.5}
    assert judged(attempt, healthy(grad_norm=tight)).findings == ()
    spike = {s: 1.0 + 0.0001 * (s % 3) for s in STEPS} | {10: 300.0}
    assert warnings(judged(attempt, healthy(grad_norm=spike))) == ["spike"]


def test_values_that_were_printed_with_few_digits_are_not_called_bit_identical(attempt):
    judgement = judged(attempt, healthy(approx_entropy=dict.fromkeys(STEPS, 5.741)))
    assert errors(judgement) == []
    assert warnings(judgement) == ["constant-entropy"]


def test_pushed_norms_that_stay_identical_fail(attempt):
    tables = healthy() | {"refit/pushed_norm": dict.fromkeys(STEPS, 17.125)}
    assert warnings(judged(attempt, tables)) == ["same-weights-pushed"]
    tables["refit/pushed_norm"] = dict.fromkeys(STEPS, 17.12345678)
    assert errors(judged(attempt, tables)) == ["same-weights-pushed"]


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("trainable params: 24,576 || all params: 1,000,000\n", []),
        ("Model: tiny, 24576 trainable parameters\n", []),
        ("Model: tiny, 0 trainable parameters\n", ["nothing-trainable"]),
        ("trainable params: 0 || all params: 1,000,000\n", ["nothing-trainable"]),
        ("nothing said\n", ["trainable-unknown"]),
    ],
)
def test_peft_needs_trainable_parameters(attempt, log, found):
    assert errors(judged(attempt, healthy(), peft=True, log=log)) == found


def test_missing_series_fail(attempt):
    tables = {"train/loss": noisy(5, 2), "train/lr": dict.fromkeys(STEPS, 1e-3)}
    assert errors(judged(attempt, tables)) == ["missing"]


def test_other_loops_names_are_known(attempt):
    verl = {
        "critic/score/mean": noisy(0.2, 0.8),
        "actor/pg_loss": noisy(0.1, 0.0),
        "actor/grad_norm": noisy(1, 1),
        "actor/entropy": noisy(5, 4),
        "actor/ppo_kl": dict.fromkeys(STEPS, 0.0),
    }
    assert judged(attempt, verl, loop="verl").verdict is Verdict.PASS
    assert "zero-gradients" in errors(
        judged(attempt, verl | {"actor/grad_norm": dict.fromkeys(STEPS, 0.0)}, loop="verl")
    )
    trl = {
        "train/reward": noisy(0.2, 0.8),
        "train/loss": noisy(0.1, 0.0),
        "train/grad_norm": noisy(1, 1),
        "train/frac_reward_zero_std": dict.fromkeys(STEPS, 1.0),
    }
    assert errors(judged(attempt, trl, loop="trl")) == ["degenerate-groups"]


def test_a_changed_threshold_is_said_and_an_unknown_one_refused(attempt):
    judgement = judged(attempt, healthy(), thresholds={"kl_limit": 100.0})
    assert [f.id for f in judgement.findings] == ["judge.learning_signal.threshold"]
    judgement = judged(attempt, healthy(), thresholds={"kl_limits": 100.0})
    assert errors(judgement) == ["params"]
    assert "kl_limit" in judgement.findings[0].what


class TestWeightsMoved:
    def judged(self, attempt, tables):
        points = {"train/loss": {1: 0.5, 2: 0.4, 3: 0.3}} | tables
        return judge(attempt(points, criteria=(Criterion(kind="weights_moved"),)))

    @pytest.mark.parametrize(
        ("tables", "found"),
        [
            ({"refit/delta/changed_elements": {1: 0.0, 2: 900.0, 3: 800.0}}, []),
            ({"refit/delta/changed_elements": {1: 900.0, 2: 0.0, 3: 0.0}}, ["still"]),
            ({"refit/pushed_norm": {1: 4.0, 2: 4.0, 3: 4.5}}, []),
            ({"refit/pushed_norm": {1: 4.0, 2: 4.0, 3: 4.0}}, ["still"]),
            ({"train/kl_penalty": {1: 0.0, 2: 0.2, 3: 0.4}}, []),
            ({"train/kl_penalty": {1: 0.0, 2: 1e-12, 3: 1e-11}}, ["still"]),
            ({}, ["unknown"]),
        ],
    )
    def test_movement_is_shown_or_it_is_an_error(self, attempt, tables, found):
        judgement = self.judged(attempt, tables)
        assert [f.id.removeprefix("judge.weights_moved.") for f in judgement.findings] == found
        assert bool(judgement.results[-1].held) is (not found)
