"""How scored responses become an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part


@dataclass(frozen=True)
class Experience:
    """Scored responses: rewards float32 [B], policy and reference log-probabilities float32 [B, T] in nats."""

    batch: Batch
    rewards: Tensor
    previous: Tensor
    reference: Tensor

    def inputs(self, advantages: Tensor) -> LossInputs:
        """With advantages float32 [B, T], what the loss needs."""
        return LossInputs(
            advantages,
            self.previous,
            self.reference,
            self.batch.generation_logprobs,
            self.batch.response_mask,
        )


class Learner(Protocol):
    """Gives each token its advantage and updates what there is to train."""

    def learn(self, step: int, experience: Experience) -> tuple[LossInputs, dict[str, float]]:
        """What the policy's loss was computed from, and the metrics of the update."""
        ...

    def parts(self) -> Mapping[str, Part]:
        """What a checkpoint must hold of this learner, by name."""
        ...
