"""Advantages relative to the group of responses to one prompt."""

from __future__ import annotations

from torch import Tensor

EPSILON = 1e-6


def group_advantages(rewards: Tensor, group_size: int, normalize: bool) -> Tensor:
    """Reward minus its group's mean, float32 [B]; ``normalize`` divides by the group's deviation (n - 1).

    ``rewards`` float32 [B] holds the groups one after another. A group with equal rewards gets zeros.
    """
    groups = rewards.view(-1, group_size)
    centred = groups - groups.mean(dim=1, keepdim=True)
    equal = groups.amax(dim=1, keepdim=True) == groups.amin(dim=1, keepdim=True)
    centred = centred.masked_fill(equal, 0.0)
    if normalize:
        centred = centred / (groups.std(dim=1, keepdim=True) + EPSILON)
    return centred.reshape(-1)
