"""What a policy backend is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.generation.base import Generator
from proveout_bench.tokenizer import Tokenizer


@dataclass(frozen=True)
class Update:
    """One optimizer step: gradient norm before clipping, learning rate used, whether weights were changed.

    ``leftover``: the gradient norm before the backward pass, which must be 0.
    """

    grad_norm: float
    lr: float
    applied: bool
    leftover: float = 0.0


class PolicyBackend(Protocol):
    """A trainable policy with a frozen reference of itself as it was at the start."""

    def trainable_parameters(self) -> int:
        """Number of scalars that the optimizer may change."""
        ...

    def logprobs(self, batch: Batch) -> Tensor:
        """Policy log-probabilities of the responses, float32 [B, T] in nats, without gradient."""
        ...

    def logits(self, ids: Tensor, pixels: Tensor | None = None) -> Tensor:
        """Logits of whole sequences without padding, float32 [B, S, V] on the CPU, for int64 ``ids`` [B, S] and
        images float32 [B, 3, H, W]."""
        ...

    def first_differing(self, original: torch.nn.Module, ids: Tensor) -> list[str]:
        """One text for each weight of the first place that computes something else than ``original``, if known."""
        ...

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """The same under the frozen reference policy."""
        ...

    def update(self, batch: Batch, loss: Callable[[Tensor], Tensor]) -> Update:
        """One optimizer step on ``loss(current log-probabilities float32 [B, T])``, a scalar.

        A gradient that is not finite is not applied.
        """
        ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights under their Hugging Face names, for a refit or an export."""
        ...

    def generator(self, tokenizer: Tokenizer) -> Generator:
        """A generator that samples with the policy itself (``rollout.engine=policy``): nothing is copied or sent."""
        ...

    def mark(self) -> None:
        """Remember the trainable weights as they are now."""
        ...

    def moved(self) -> float:
        """L2 norm of the change of the trainable weights since ``mark``."""
        ...

    def unmoved(self) -> int:
        """Number of trainable tensors that are as they were at ``mark``, bit for bit."""
        ...

    def parts(self) -> Mapping[str, Part]:
        """What a checkpoint must hold of this policy, by name: ``policy``, ``optimizer``, ``scheduler``."""
        ...

    def measure(self) -> dict[str, float]:
        """What this kind of policy reports besides, such as what of an adapter the last ``weights`` held."""
        ...

    def export(self, folder: Path) -> None:
        """Write the trained policy as a Hugging Face checkpoint (without its tokenizer)."""
        ...

    def export_errors(self, folder: Path, batch: Batch) -> dict[str, float]:
        """Largest difference in nats between this policy's log-probabilities and those of what was exported."""
        ...
