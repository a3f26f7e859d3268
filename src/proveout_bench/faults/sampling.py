"""Faults of the sampler, and the sampler's hooks: without a fault they change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor


class Sampling:
    """The hooks of a sound sampler."""

    def delivered(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterable[tuple[str, Tensor]]:
        """The weights of refit ``version`` (from 1) as they arrive."""
        return weights

    def keeps_prefix(self) -> bool:
        """Whether keys and values outlive a refit."""
        return False

    def logits(self, logits: Tensor) -> Tensor:
        """Next-token logits [B, V] before sampling."""
        return logits

    def pixels(self, pixels: Tensor) -> Tensor:
        """Images float32 [B, 3, H, W] as the sampler sees them."""
        return pixels


class BlankImages(Sampling):
    """Images do not reach the sampler."""

    def pixels(self, pixels: Tensor) -> Tensor:
        """All 0."""
        return torch.zeros_like(pixels)


class KeptPrefix(Sampling):
    """Keys and values of the old weights are used with the new ones."""

    def keeps_prefix(self) -> bool:
        """They are kept."""
        return True


class Stale(Sampling):
    """Nothing arrives from a refit on."""

    def __init__(self, at: int) -> None:
        self._at = at

    def delivered(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterator[tuple[str, Tensor]]:
        """All before ``at``, then none."""
        return iter(()) if version >= self._at else iter(weights)


class LateByOne(Sampling):
    """Each refit brings the weights of the one before."""

    def __init__(self) -> None:
        self._held: list[tuple[str, Tensor]] = []

    def delivered(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterator[tuple[str, Tensor]]:
        """What was sent the last time."""
        before, self._held = self._held, [(name, weight.clone()) for name, weight in weights]
        return iter(before or self._held)


class Truncated(Sampling):
    """Samples from the three most likely tokens and reports probabilities of that narrower choice."""

    def logits(self, logits: Tensor) -> Tensor:
        """All but three are impossible."""
        least = logits.topk(3, dim=-1).values[:, -1:]
        return torch.where(logits < least, -torch.inf, logits)
