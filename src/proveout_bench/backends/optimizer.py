"""AdamW with clipping by global norm and a linear warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from proveout_bench.backends.base import Update
from proveout_bench.backends.shares import AllRows, Share
from proveout_bench.backends.whole import norm, sharded, whole
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Optimizer as Settings
from proveout_bench.faults import Faults


class Optimizer:
    """Steps over ``weights`` at learning rate ``lr``; ``share`` says how the ranks compute their gradients."""

    def __init__(
        self,
        weights: list[torch.nn.Parameter],
        lr: float,
        settings: Settings,
        faults: Faults,
        share: Share | None = None,
    ) -> None:
        self._weights, self._settings, self._faults = weights, settings, faults
        self._share = share or AllRows()
        self._marked: list[Tensor] = []
        self._updates = 0
        self._optimizer = torch.optim.AdamW(
            _groups(weights),
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

    def step(self, backward: Callable[[], None]) -> Update:
        """One update on the gradient that ``backward`` adds; one that is not finite is not applied."""
        self._faults.zero_grad(self._optimizer)
        leftover = float(norm(self._gradients()))
        backward()
        if self._faults.reduces():
            self._share.reduce(self._weights)
        self._updates += 1
        self._faults.gradients(self._updates, self._weights)
        length = self._clip()
        rate = float(self._optimizer.param_groups[0]["lr"])
        applied = math.isfinite(length)
        if applied:
            self._optimizer.step()
            self._schedule.step()
        return Update(grad_norm=length, lr=rate, applied=applied, leftover=leftover)

    def parts(self) -> dict[str, Stateful]:
        """``optimizer`` and ``scheduler``."""
        if any(sharded(weight) for weight in self._weights):
            from proveout_bench.backends.tensor_parallel import WholeOptimizer

            return {"optimizer": WholeOptimizer(self._optimizer), "scheduler": self._schedule}
        return {"optimizer": self._optimizer, "scheduler": self._schedule}

    def mark(self) -> None:
        """Copy the weights."""
        self._marked = [weight.detach().clone() for weight in self._weights]

    def moved(self) -> float:
        """L2 norm of the change since ``mark``, over all weights together."""
        return moved(self._weights, self._marked)

    def _gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self._weights if weight.grad is not None]

    def _clip(self) -> float:
        """The gradient norm over all weights, those of other ranks too, before it was clipped."""
        total = torch.nn.utils.get_total_norm
        parts = [
            whole(total([one for one in self._gradients() if sharded(one) is spread]))
            for spread in (False, True)
            if any(sharded(one) is spread for one in self._gradients())
        ]
        length = parts[0] if len(parts) == 1 else torch.stack(parts).norm()
        for group in _groups(self._weights):
            torch.nn.utils.clip_grads_with_norm_(group["params"], self._settings.max_grad_norm, length)
        return float(length)


def _groups(weights: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
    """Whole and sharded weights apart: torch's fused kernels take one kind at a time."""
    kinds = [[weight for weight in weights if sharded(weight) is kind] for kind in (False, True)]
    return [{"params": kind} for kind in kinds if kind]


def moved(weights: list[torch.nn.Parameter], marked: list[Tensor]) -> float:
    """L2 norm of the change of ``weights`` since they were copied to ``marked``, over all together."""
    if not marked:
        raise RuntimeError("moved() before mark()")
    return float(norm(now.detach() - then for now, then in zip(weights, marked, strict=True)))
