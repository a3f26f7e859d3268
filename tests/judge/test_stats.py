"""Trend statistics against scipy, an independent implementation."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats as peer

from proveout.judge.stats import blocks, trend

VALUES = st.lists(st.integers(-50, 50).map(lambda v: v / 4), min_size=4, max_size=40)


@settings(deadline=None, max_examples=60)
@given(VALUES)
def test_slope_and_tau_are_scipys(values):
    steps = [float(step) for step in range(1, len(values) + 1)]
    ours = trend(steps, values)
    assert ours.slope == pytest.approx(peer.theilslopes(values, steps)[0], abs=1e-12)
    assume(len(set(values)) == len(values))
    assert ours.tau == pytest.approx(peer.kendalltau(steps, values).statistic, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(VALUES)
def test_the_interval_is_close_to_scipys_which_rounds_it_otherwise(values):
    assume(len(set(values)) > 2)
    steps = [float(step) for step in range(1, len(values) + 1)]
    ours = trend(steps, values, 0.9)
    theirs = peer.theilslopes(values, steps, 0.9)
    assert ours.low <= theirs.low_slope + 1e-9
    assert ours.high >= theirs.high_slope - 1e-9
    assert ours.low <= ours.slope <= ours.high


def test_the_probability_is_the_published_one():
    # S = 28 of 28 pairs, variance 8*7*21/18: z = 27 / 8.083 = 3.340
    rising = trend(range(8), range(8))
    assert rising.p_up == pytest.approx(1 - peer.norm.cdf(27 / math.sqrt(8 * 7 * 21 / 18)))
    assert rising.p_down == pytest.approx(peer.norm.cdf(27 / math.sqrt(8 * 7 * 21 / 18)), abs=0.001)


def test_ties_widen_nothing_that_is_constant():
    flat = trend(range(9), [2.0] * 9)
    assert (flat.slope, flat.tau, flat.p_up, flat.p_down) == (0.0, 0.0, 1.0, 1.0)


def test_noise_without_a_trend_rarely_looks_like_one():
    import numpy as np

    generator = np.random.default_rng(7)
    runs = [trend(range(30), generator.normal(size=30)).p_up < 0.01 for _ in range(400)]
    assert sum(runs) <= 10


def test_two_values_are_no_trend():
    with pytest.raises(ValueError, match="3 values"):
        trend([1, 2], [1.0, 2.0])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300), st.integers(3, 50))
def test_blocks_keep_the_mean_of_all_points_and_the_limit(values, most):
    steps, means = blocks([float(s) for s in range(len(values))], values, most)
    assert len(steps) == len(means) == min(len(values), most)
    assert min(values) - 1e-9 <= min(means) <= max(means) <= max(values) + 1e-9
