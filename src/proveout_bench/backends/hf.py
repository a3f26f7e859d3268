"""The policy as a transformers model in this process, trained by AdamW."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from proveout_bench.backends.base import Update
from proveout_bench.batch import Batch
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.forward import response_logprobs


class HfBackend:
    """Owns ``model`` (float32, already on its device) and a frozen copy of it as the reference."""

    def __init__(self, config: GrpoConfig, model: torch.nn.Module) -> None:
        self._config, self._model = config, model
        self._reference = copy.deepcopy(model).requires_grad_(False)
        self._trainable = [weight for weight in model.parameters() if weight.requires_grad]
        self._marked: list[Tensor] = []
        settings = config.optimizer
        self._optimizer = torch.optim.AdamW(
            self._trainable,
            lr=config.lr,
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        warmup = settings.warmup_steps
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda count: min(1.0, (count + 1) / (warmup + 1))
        )

    def trainable_parameters(self) -> int:
        """Number of scalars that the optimizer may change."""
        return sum(weight.numel() for weight in self._trainable)

    def logprobs(self, batch: Batch) -> Tensor:
        """Policy log-probabilities, float32 [B, T]."""
        with torch.no_grad():
            return response_logprobs(self._model, batch, self._config.rollout.temperature)

    def reference_logprobs(self, batch: Batch) -> Tensor:
        """Reference log-probabilities, float32 [B, T]."""
        with torch.no_grad():
            return response_logprobs(self._reference, batch, self._config.rollout.temperature)

    def update(self, batch: Batch, loss: Callable[[Tensor], Tensor]) -> Update:
        """Backward pass, clipping by global norm, AdamW; reports the learning rate that was used."""
        self._optimizer.zero_grad(set_to_none=True)
        loss(response_logprobs(self._model, batch, self._config.rollout.temperature)).backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self._trainable, self._config.optimizer.max_grad_norm))
        rate = float(self._optimizer.param_groups[0]["lr"])
        applied = math.isfinite(norm)
        if applied:
            self._optimizer.step()
            self._schedule.step()
        return Update(grad_norm=norm, lr=rate, applied=applied)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All parameters, detached; a tied one once."""
        return ((name, weight.detach()) for name, weight in self._model.named_parameters())

    def mark(self) -> None:
        """Copy the trainable weights."""
        self._marked = [weight.detach().clone() for weight in self._trainable]

    def moved(self) -> float:
        """L2 norm over all trainable weights together."""
        if not self._marked:
            raise RuntimeError("moved() before mark()")
        parts = [
            (now.detach() - then).norm() for now, then in zip(self._trainable, self._marked, strict=True)
        ]
        return float(torch.stack(parts).norm())
