"""What an algorithm is to the driver that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.tokenizer import Tokenizer


class Algorithm(Protocol):
    """A policy with its data, one step at a time. Built from its configuration and the phases of the run."""

    policy: PolicyBackend
    tokenizer: Tokenizer

    def step(self, step: int) -> dict[str, float]:
        """Train one step (counted from 1); its metrics, the loss among them."""
        ...

    def validate(self) -> dict[str, float]:
        """Measures on held-out prompts, ``accuracy`` among them; training goes on as if it had not been called."""
        ...

    def sample(self) -> Batch:
        """Sequences of the latest step."""
        ...

    def parts(self) -> Mapping[str, Part]:
        """All that a checkpoint must hold for the next step to be the same bit for bit, by name."""
        ...
