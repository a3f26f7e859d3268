"""One engine for a run of several processes: rank 0 samples, and every rank gets the same batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from proveout_bench import ranks
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.generation.base import Generator
from proveout_bench.refit.report import RefitReport


class SharedGenerator:
    """Wraps the engine of rank 0; on other ranks ``inner`` is None. Batches end on each rank's own ``device``."""

    def __init__(self, inner: Generator | None, device: str = "cpu") -> None:
        self._inner, self._device = inner, device

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Rank 0 takes the weights over; on the others gathering them is all there is to do."""
        if self._inner is None:
            ranks.exhaust(weights)
        else:
            self._inner.load_weights(weights)

    def generate(self, prompts: list[list[int]], pixels: Tensor | None = None) -> Batch:
        """Rank 0's responses, on all ranks."""
        batch: Batch = ranks.shared(self._inner.generate(prompts, pixels).to("cpu") if self._inner else None)
        return batch.to(self._device)

    def refit(self) -> RefitReport:
        """What rank 0's last ``load_weights`` did."""
        return self._inner.refit() if self._inner is not None else RefitReport()

    def reseed(self, seed: int) -> None:
        """Start the sampling anew."""
        if self._inner is not None:
            self._inner.reseed(seed)

    def part(self) -> Stateful:
        """The state of rank 0's sampling; the others have none."""
        return self._inner.part() if self._inner is not None else Nothing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Nothing:
    """A part of a checkpoint that holds nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Empty."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Leave it."""
