"""Agreement between generation and policy, over valid tokens.

All take log-probabilities in nats, float [B, T], and ``mask`` float32 [B, T] (1 = valid), and return a float.
Names and formulas are NeMo-RL's (``nemo_rl/algorithms``, clipped policy-gradient loss and GRPO driver).
k3 is the estimator of J. Schulman, "Approximating KL Divergence" (2020).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``values`` where ``mask`` is 1, a scalar tensor; 0 if nothing is valid.

    What stands on masked places is ignored, NaN included.
    """
    return torch.where(mask > 0, values, 0.0).sum() / mask.sum().clamp_min(1.0)


def k3(target: Tensor, sampled: Tensor) -> Tensor:
    """exp(r) - 1 - r with r = target - sampled, [B, T]; the mean on samples of ``sampled`` estimates a KL.

    Written with expm1, which keeps the small values that exp(r) - 1 rounds away.
    """
    log_ratio = target - sampled
    return log_ratio.expm1() - log_ratio


def token_mult_prob_error(generation: Tensor, previous: Tensor, mask: Tensor) -> float:
    """Mean of exp(|generation - previous|); 1 means that both agree on every token."""
    return float(masked_mean((generation - previous).abs().exp(), mask))


def gen_kl_error(generation: Tensor, previous: Tensor, mask: Tensor) -> float:
    """Mean k3 with log ratio previous - generation."""
    return float(masked_mean(k3(previous, generation), mask))


def policy_kl_error(generation: Tensor, previous: Tensor, mask: Tensor) -> float:
    """Mean k3 with log ratio generation - previous."""
    return float(masked_mean(k3(generation, previous), mask))


def js_divergence_error(generation: Tensor, previous: Tensor, mask: Tensor) -> float:
    """Half the sum of the k3 of each side against the even mixture of both."""
    mixture = torch.logaddexp(generation, previous) - math.log(2.0)
    return float(masked_mean(0.5 * (k3(mixture, generation) + k3(mixture, previous)), mask))


def sampling_importance_ratio(generation: Tensor, previous: Tensor, mask: Tensor) -> float:
    """Mean of exp(previous - generation)."""
    return float(masked_mean((previous - generation).exp(), mask))


def approx_entropy(current: Tensor, generation: Tensor, mask: Tensor) -> float:
    """Minus the mean of exp(current - generation) * current, in nats."""
    return float(-masked_mean((current - generation).exp() * current, mask))


def sequence_mult_prob_errors(generation: Tensor, previous: Tensor, mask: Tensor) -> Tensor:
    """token_mult_prob_error of each sequence, float32 [B]."""
    ratio = torch.where(mask > 0, (generation - previous).abs().exp(), 0.0)
    return ratio.sum(dim=1) / mask.sum(dim=1).clamp_min(1.0)


def masked_extremes(values: Tensor, mask: Tensor) -> tuple[float, float]:
    """Smallest and largest valid value; (-1.0, -1.0) if nothing is valid."""
    valid = values[mask > 0]
    return (float(valid.min()), float(valid.max())) if valid.numel() else (-1.0, -1.0)
