"""Metric formulas against scalar computations with the standard library."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proveout_bench.metrics import formulas

GEN = [[-1.0, -2.0, -0.5], [-3.0, -0.25, -9.0]]
PREV = [[-1.5, -1.75, -0.5], [-2.0, -0.5, -1.0]]
CUR = [[-1.25, -2.5, -0.75], [-2.5, -0.125, -4.0]]
MASK = [[1, 1, 1], [1, 1, 0]]
VALID = [
    (g, p, c)
    for gs, ps, cs, ms in zip(GEN, PREV, CUR, MASK, strict=True)
    for g, p, c, m in zip(gs, ps, cs, ms, strict=True)
    if m
]


def tensors() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return (
        torch.tensor(GEN, dtype=torch.float64),
        torch.tensor(PREV, dtype=torch.float64),
        torch.tensor(CUR, dtype=torch.float64),
        torch.tensor(MASK, dtype=torch.float32),
    )


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def k3(r: float) -> float:
    return math.exp(r) - 1 - r


def test_token_mult_prob_error() -> None:
    gen, prev, _, mask = tensors()
    expected = mean([math.exp(abs(g - p)) for g, p, _ in VALID])
    assert formulas.token_mult_prob_error(gen, prev, mask) == pytest.approx(expected)


def test_gen_and_policy_kl_error_are_k3_in_opposite_directions() -> None:
    gen, prev, _, mask = tensors()
    assert formulas.gen_kl_error(gen, prev, mask) == pytest.approx(mean([k3(p - g) for g, p, _ in VALID]))
    assert formulas.policy_kl_error(gen, prev, mask) == pytest.approx(mean([k3(g - p) for g, p, _ in VALID]))


def test_js_divergence_error_is_half_of_both_k3_against_the_mixture() -> None:
    gen, prev, _, mask = tensors()

    def one(g: float, p: float) -> float:
        m = math.log((math.exp(g) + math.exp(p)) / 2)
        return (k3(m - g) + k3(m - p)) / 2

    expected = mean([one(g, p) for g, p, _ in VALID])
    assert formulas.js_divergence_error(gen, prev, mask) == pytest.approx(expected)


def test_sampling_importance_ratio_and_entropy() -> None:
    gen, prev, cur, mask = tensors()
    ratio = mean([math.exp(p - g) for g, p, _ in VALID])
    assert formulas.sampling_importance_ratio(gen, prev, mask) == pytest.approx(ratio)
    entropy = -mean([math.exp(c - g) * c for g, _, c in VALID])
    assert formulas.approx_entropy(cur, gen, mask) == pytest.approx(entropy)


def test_the_error_of_each_sequence() -> None:
    gen, prev, _, mask = tensors()
    expected = [
        mean([math.exp(0.5), math.exp(0.25), 1.0]),
        mean([math.exp(1.0), math.exp(0.25)]),
    ]
    assert formulas.sequence_mult_prob_errors(gen, prev, mask).tolist() == pytest.approx(expected)


def test_extremes_ignore_the_masked_and_say_when_nothing_is_valid() -> None:
    _, _, cur, mask = tensors()
    assert formulas.masked_extremes(cur, mask) == (-2.5, -0.125)
    assert formulas.masked_extremes(cur, torch.zeros_like(mask)) == (-1.0, -1.0)


def test_nan_counts_where_valid_and_only_there() -> None:
    gen, prev, _, mask = tensors()
    gen[1, 2] = math.nan
    assert math.isfinite(formulas.gen_kl_error(gen, prev, mask))
    gen[0, 1] = math.nan
    assert math.isnan(formulas.gen_kl_error(gen, prev, mask))


@given(st.lists(st.tuples(st.floats(-20, 0), st.floats(-20, 0)), min_size=1, max_size=8))
def test_k3_is_never_negative_and_zero_only_for_equal_sides(pairs: list[tuple[float, float]]) -> None:
    one, other = torch.tensor(pairs, dtype=torch.float64).T
    value = formulas.k3(one, other)
    assert (value >= 0).all()
    assert (formulas.k3(one, one) == 0).all()
    assert ((value > 0) | ((one - other).abs() < 1e-6)).all()


def test_k3_keeps_differences_that_float32_would_round_away() -> None:
    small = torch.tensor([1e-7], dtype=torch.float64)
    assert float(formulas.k3(small, torch.zeros(1, dtype=torch.float64))) == pytest.approx(5e-15, rel=0.1)
