"""The policy as a transformers model in this process, trained by AdamW: all weights, or adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from proveout_bench import parity
from proveout_bench.backends import shares
from proveout_bench.backends.base import Update
from proveout_bench.backends.full import FullModel
from proveout_bench.backends.lora import LoraModel
from proveout_bench.backends.optimizer import Optimizer, moved
from proveout_bench.backends.passes import Passes
from proveout_bench.backends.whole import whole
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.generation.base import Generator
from proveout_bench.generation.inprocess import PolicyGenerator
from proveout_bench.tokenizer import Tokenizer


class Trained(Protocol):
    """What of the model is trained: see ``FullModel`` and ``LoraModel``."""

    module: Any
    trainable: list[torch.nn.Parameter]

    def reference(self) -> AbstractContextManager[torch.nn.Module]:
        """The frozen reference policy."""
        ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights under their Hugging Face names."""
        ...

    def part(self) -> Stateful:
        """What a checkpoint holds of the weights."""
        ...

    def measure(self) -> dict[str, float]:
        """Metrics of its own."""
        ...

    def export(self, folder: Path) -> None:
        """Write a Hugging Face checkpoint."""
        ...

    def export_errors(self, folder: Path, batch: Batch, temperature: float) -> dict[str, float]:
        """How far the written checkpoint is from this policy, in nats."""
        ...


class HfBackend:
    """The policy that starts as ``model`` (float32, already on its device)."""

    def __init__(self, config: RunConfig, model: torch.nn.Module) -> None:
        faults = Faults(config.fault)
        self._marked: list[Tensor] = []
        self._rollout, self._seed = config.rollout, config.seed
        self._temperature = faults.temperature(config.rollout.temperature)
        share = shares.share_of(config.runtime.ranks)
        self._model = _trained(config, model, faults)
        self._passes = Passes(self._temperature, share, config.dynamic_batching.train_mb_tokens, faults)
        self._optimizer = Optimizer(
            faults.optimized(self._model.trainable), config.lr, config.optimizer, faults, share
        )

    def trainable_parameters(self) -> int:
        """Number of scalars that the optimizer may change."""
        return sum(weight.numel() for weight in self._model.trainable)

    def logprobs(self, batch: Batch) -> Tensor:
        """Policy log-probabilities, float32 [B, T]."""
        return self._passes.logprobs(self._model.module, batch)

    def logits(self, ids: Tensor, pixels: Tensor | None = None) -> Tensor:
        """Logits of whole sequences, float32 [B, S, V] on the CPU."""
        return parity.logits_of(self._model.module, ids, pixels)

    def first_differing(self, original: torch.nn.Module, ids: Tensor) -> list[str]:
        """Unknown: equal weights compute the same here."""
        return []

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """Reference log-probabilities, float32 [B, T]."""
        with self._model.reference() as reference:
            return self._passes.logprobs(reference, batch)

    def update(self, batch: Batch, loss: Callable[[Tensor], Tensor]) -> Update:
        """Backward pass, clipping by global norm, AdamW; reports the learning rate that was used."""
        return self._optimizer.step(
            lambda: self._passes.backward(self._model.module, batch, loss, self._model.trainable)
        )

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights of the plain model, detached; a tied one once."""
        return self._model.weights()

    def generator(self, tokenizer: Tokenizer) -> Generator:
        """Samples with the module under training, adapters and all."""
        return PolicyGenerator(self._rollout, self._model.module, tokenizer, self._seed)

    def mark(self) -> None:
        """Copy the trainable weights."""
        self._marked = [weight.detach().clone() for weight in self._model.trainable]

    def moved(self) -> float:
        """L2 norm over all trainable weights together."""
        return moved(self._model.trainable, self._marked)

    def unmoved(self) -> int:
        """Trainable tensors without any change."""
        return sum(
            torch.equal(whole(now), whole(then))
            for now, then in zip(self._model.trainable, self._marked, strict=True)
        )

    def parts(self) -> dict[str, Stateful]:
        """``policy``, ``optimizer`` and ``scheduler``."""
        return {"policy": self._model.part(), **self._optimizer.parts()}

    def measure(self) -> dict[str, float]:
        """Metrics of the adapters, if there are any, and whether all ranks hold the same weights."""
        return {
            **self._model.measure(),
            **self._passes.measure(),
            **shares.measure(self._model.trainable),
        }

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face checkpoint, with adapters both merged and apart."""
        self._model.export(folder)

    def export_errors(self, folder: Path, batch: Batch) -> dict[str, float]:
        """Largest absolute differences on ``batch``, by what was exported."""
        return self._model.export_errors(folder, batch, self._temperature)


def _trained(config: RunConfig, model: torch.nn.Module, faults: Faults) -> Trained:
    if config.lora.rank:
        return LoraModel(config.lora, model, faults, config.seed)
    if config.runtime.tp > 1:
        from proveout_bench.backends.tensor_parallel import TensorParallelModel

        return TensorParallelModel(model, faults)
    return FullModel(model)
