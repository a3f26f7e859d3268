"""AdamW with clipping by global norm and a linear warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from proveout_bench.backends.base import Update
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Optimizer as Settings
from proveout_bench.faults import Faults


class Optimizer:
    """Steps over ``weights`` at learning rate ``lr``."""

    def __init__(
        self, weights: list[torch.nn.Parameter], lr: float, settings: Settings, faults: Faults
    ) -> None:
        self._weights, self._settings, self._faults = weights, settings, faults
        self._marked: list[Tensor] = []
        self._updates = 0
        self._optimizer = torch.optim.AdamW(
            weights,
            lr=faults.rate(lr),
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        warmup = settings.warmup_steps
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda count: min(1.0, (count + 1) / (warmup + 1))
        )

    def step(self, loss: Callable[[], Tensor]) -> Update:
        """One update on the scalar that ``loss`` computes; a gradient that is not finite is not applied."""
        self._faults.zero_grad(self._optimizer)
        left = [weight.grad.norm() for weight in self._weights if weight.grad is not None]
        leftover = float(torch.stack(left).norm()) if left else 0.0
        loss().backward()
        self._updates += 1
        self._faults.gradients(self._updates, self._weights)
        norm = float(torch.nn.utils.clip_grad_norm_(self._weights, self._settings.max_grad_norm))
        rate = float(self._optimizer.param_groups[0]["lr"])
        applied = math.isfinite(norm)
        if applied:
            self._optimizer.step()
            self._schedule.step()
        return Update(grad_norm=norm, lr=rate, applied=applied, leftover=leftover)

    def parts(self) -> dict[str, Stateful]:
        """``optimizer`` and ``scheduler``."""
        return {"optimizer": self._optimizer, "scheduler": self._schedule}

    def mark(self) -> None:
        """Copy the weights."""
        self._marked = [weight.detach().clone() for weight in self._weights]

    def moved(self) -> float:
        """L2 norm of the change since ``mark``, over all weights together."""
        return moved(self._weights, self._marked)


def moved(weights: list[torch.nn.Parameter], marked: list[Tensor]) -> float:
    """L2 norm of the change of ``weights`` since they were copied to ``marked``, over all together."""
    if not marked:
        raise RuntimeError("moved() before mark()")
    parts = [(now.detach() - then).norm() for now, then in zip(weights, marked, strict=True)]
    return float(torch.stack(parts).norm())
