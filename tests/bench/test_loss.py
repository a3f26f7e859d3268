"""The GRPO loss and advantages against hand computations."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
import torch

from proveout_bench.algorithms.grpo.advantage import group_advantages
from proveout_bench.algorithms.grpo.loss import LossInputs, grpo_loss
from proveout_bench.algorithms.grpo.train import Piece, combine
from proveout_bench.config.schema import Loss


def inputs(advantage: float, previous: float = -1.0, reference: float = -1.0) -> LossInputs:
    """One sequence with one valid token and one masked one that holds NaN-free nonsense."""
    return LossInputs(
        advantages=torch.tensor([[advantage, advantage]]),
        previous=torch.tensor([[previous, -7.0]]),
        reference=torch.tensor([[reference, -3.0]]),
        generation=torch.tensor([[previous, -5.0]]),
        mask=torch.tensor([[1.0, 0.0]]),
    )


def loss_and_slope(log_ratio: float, advantage: float, config: Loss) -> tuple[float, float]:
    current = torch.tensor([[-1.0 + log_ratio, -2.0]], requires_grad=True)
    loss, _ = grpo_loss(current, inputs(advantage), config)
    loss.backward()
    assert current.grad is not None
    assert current.grad[0, 1] == 0
    return float(loss.detach()), float(current.grad[0, 0])


PLAIN = Loss(kl_beta=0.0, clip_low=0.2, clip_high=0.3)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.6, 0.0),
        (0.5, 2.0, -1.0, -1.0),
        (0.5, -2.0, 1.6, 0.0),
        (1.5, -2.0, 3.0, 3.0),
    ],
)
def test_the_ratio_is_clipped_on_the_side_that_would_gain(
    ratio: float, advantage: float, loss: float, slope: float
) -> None:
    assert loss_and_slope(math.log(ratio), advantage, PLAIN) == (
        pytest.approx(loss),
        pytest.approx(slope, abs=1e-6),
    )


def test_the_kl_term_is_weighted_k3_from_the_current_to_the_reference_policy() -> None:
    current = torch.tensor([[-1.5, -2.0]], requires_grad=True)
    loss, metrics = grpo_loss(
        current, inputs(0.0, previous=-1.5, reference=-1.0), replace(PLAIN, kl_beta=0.1)
    )
    expected = math.exp(0.5) - 1 - 0.5
    assert metrics["kl_penalty"] == pytest.approx(expected)
    assert float(loss.detach()) == pytest.approx(0.1 * expected)
    loss.backward()
    assert current.grad is not None
    assert float(current.grad[0, 0]) == pytest.approx(0.1 * (1 - math.exp(0.5)))


def test_ratio_metrics_see_valid_tokens_only() -> None:
    current = torch.tensor([[-1.0 + math.log(1.5), 50.0]])
    _, metrics = grpo_loss(current, inputs(1.0), PLAIN)
    assert metrics["probs_ratio"] == pytest.approx(1.5)
    assert metrics["probs_ratio_max"] == pytest.approx(1.5)
    assert metrics["probs_ratio_clamped_min"] == metrics["probs_ratio_clamped_max"] == pytest.approx(1.3)


def test_a_long_sequence_weighs_by_its_tokens() -> None:
    both = LossInputs(
        advantages=torch.tensor([[1.0], [-1.0]]).expand(2, 3),
        previous=torch.zeros(2, 3),
        reference=torch.zeros(2, 3),
        generation=torch.zeros(2, 3),
        mask=torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]),
    )
    assert float(grpo_loss(torch.zeros(2, 3), both, PLAIN)[0]) == pytest.approx(-(3 - 1) / 4)


def test_advantages_are_relative_to_the_own_group() -> None:
    rewards = [0.0, 1.0, 0.5, 10.0, 10.0, 40.0]
    found = group_advantages(torch.tensor(rewards), 3, normalize=True).tolist()
    expected = []
    for group in (rewards[:3], rewards[3:]):
        expected += [(r - statistics.mean(group)) / statistics.stdev(group) for r in group]
    assert found == pytest.approx(expected, rel=1e-4)
    plain = group_advantages(torch.tensor(rewards), 3, normalize=False).tolist()
    assert plain == pytest.approx([-0.5, 0.5, 0.0, -10.0, -10.0, 20.0])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("reward", [0.0, 0.1, 1 / 3, 1.0])
def test_a_group_of_equal_rewards_has_exactly_no_advantage(reward: float, normalize: bool) -> None:
    assert group_advantages(torch.full((7,), reward), 7, normalize).tolist() == [0.0] * 7


def test_minibatch_metrics_combine_by_tokens_and_extremes_and_keep_nan() -> None:
    one = {"loss": 1.0, "probs_ratio_min": 0.9, "probs_ratio_max": 1.2, "lr": 0.1, "grad_norm": math.nan}
    two = {"loss": 4.0, "probs_ratio_min": 0.8, "probs_ratio_max": 1.1, "lr": 0.2, "grad_norm": 1.0}
    found = combine([Piece(one, 10.0), Piece(two, 20.0)])
    assert math.isnan(found.pop("grad_norm"))
    assert found == {"loss": pytest.approx(3.0), "probs_ratio_min": 0.8, "probs_ratio_max": 1.2, "lr": 0.2}
