"""Generalized advantage estimation (Schulman et al., "High-Dimensional Continuous Control Using GAE", 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from proveout_bench.metrics.formulas import masked_mean

EPSILON = 1e-8


def terminal_rewards(rewards: Tensor, mask: Tensor) -> Tensor:
    """Rewards float32 [B] put on the last valid token of each response: float32 [B, T]."""
    last = (mask.sum(dim=1).long() - 1).clamp_min(0)
    placed = torch.zeros_like(mask)
    placed[torch.arange(len(mask), device=mask.device), last] = rewards
    return placed * mask


def advantages_and_returns(
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Equations 11 and 16 of the paper, on valid tokens (a prefix of each row); all float32 [B, T].

    The value after the last valid token is 0. Invalid places get 0.
    """
    advantages = torch.zeros_like(values)
    following = torch.zeros_like(values[:, 0])
    after = torch.zeros_like(values[:, 0])
    for place in range(values.shape[1] - 1, -1, -1):
        valid = mask[:, place]
        error = rewards[:, place] + gamma * after - values[:, place]
        following = (error + gamma * lam * following) * valid
        after = values[:, place] * valid
        advantages[:, place] = following
    return advantages, (advantages + values) * mask


def whiten(advantages: Tensor, mask: Tensor) -> Tensor:
    """Mean 0 and deviation 1 over the valid tokens, float32 [B, T]; 0 elsewhere."""
    mean = masked_mean(advantages, mask)
    deviation = masked_mean((advantages - mean).square(), mask).sqrt()
    return (advantages - mean) / (deviation + EPSILON) * mask
