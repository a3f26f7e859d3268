"""What a generation engine is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from torch import Tensor

from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.refit.report import RefitReport


class Generator(Protocol):
    """Holds weights of its own, which change only by ``load_weights`` (the refit)."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Take over the policy's weights, named as in the Hugging Face checkpoint."""
        ...

    def refit(self) -> RefitReport:
        """What the last ``load_weights`` did."""
        ...

    def generate(self, prompts: list[list[int]], pixels: Tensor | None = None) -> Batch:
        """Sample one response for each prompt (token ids), with the images float32 [B, 3, H, W] if there are any."""
        ...

    def reseed(self, seed: int) -> None:
        """Sample from here on as a generator that was just made with ``seed`` does."""
        ...

    def part(self) -> Stateful:
        """The state of the sampling, for a checkpoint."""
        ...
