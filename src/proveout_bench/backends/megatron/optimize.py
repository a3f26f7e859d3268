"""Megatron's optimizer and its schedule of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from proveout_bench.backends.base import Update
from proveout_bench.backends.megatron.build import Built
from proveout_bench.backends.megatron.weights import trainable
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_cpu.torch_cuda import on_cpu

FOREVER = 1 << 40


class MegatronOptimizer:
    """Steps over the trainable parameters of ``built``, with Adam's decoupled weight decay, float32."""

    def __init__(self, built: Built, config: RunConfig, faults: Faults) -> None:
        from megatron.core.distributed import finalize_model_grads
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

        asked, lr = config.optimizer, faults.rate(config.lr)
        settings = OptimizerConfig(
            optimizer="adam",
            lr=lr,
            min_lr=0.0,
            weight_decay=asked.weight_decay,
            adam_beta1=asked.beta1,
            adam_beta2=asked.beta2,
            adam_eps=asked.eps,
            clip_grad=asked.max_grad_norm,
            bf16=False,
            fp16=False,
            params_dtype=torch.float32,
            use_distributed_optimizer=config.megatron.distributed_optimizer,
        )
        self._model, self._faults = built.model, faults
        with on_cpu():
            self.inner: Any = get_megatron_optimizer(settings, built.model)
        for group in self.inner.param_groups:
            group["params"] = faults.optimized(group["params"])
        warmup = asked.warmup_steps
        self.schedule: Any = OptimizerParamScheduler(
            self.inner,
            init_lr=0.0,
            max_lr=lr,
            min_lr=0.0,
            lr_warmup_steps=warmup + 1 if warmup else 0,
            lr_decay_steps=FOREVER,
            lr_decay_style="constant",
            start_wd=asked.weight_decay,
            end_wd=asked.weight_decay,
            wd_incr_steps=0,
            wd_incr_style="constant",
        )
        if warmup:
            self.schedule.step(1)
        if faults.reduces():
            built.settings.finalize_model_grads_func = finalize_model_grads
        built.settings.grad_scale_func = self.inner.scale_loss
        self._weights = trainable(built.model[0].module)
        self._marked: dict[str, Tensor] = {}
        self._updates = 0

    def step(self, backward: Callable[[], None]) -> Update:
        """One update on the gradients that ``backward`` makes; one that is not finite is not applied."""
        with on_cpu():
            if not self._faults.keeps_gradients():
                for chunk in self._model:
                    chunk.zero_grad_buffer()
                self.inner.zero_grad()
            leftover = math.sqrt(over_ranks(self._weights, _gradient))
            backward()
            self._updates += 1
            rate = float(self.inner.param_groups[0]["lr"])
            self.inner.prepare_grads()
            self._faults.gradients(self._updates, list(self._weights.values()))
            norm = float(self.inner.get_grad_norm() or 0.0)
            if not math.isfinite(norm):
                return Update(grad_norm=norm, lr=rate, applied=False, leftover=leftover)
            applied, _, _ = self.inner.step()
            self.schedule.step(1)
            return Update(grad_norm=norm, lr=rate, applied=bool(applied), leftover=leftover)

    def mark(self) -> None:
        """Copy the trainable parameters of this rank."""
        self._marked = {name: weight.detach().clone() for name, weight in self._weights.items()}

    def moved(self) -> float:
        """L2 norm of the change since ``mark`` over all ranks' parameters, each counted once."""
        if not self._marked:
            raise RuntimeError("moved() before mark()")
        squares = over_ranks(
            self._weights,
            lambda name, weight: float((weight.detach() - self._marked[name]).square().sum()),
        )
        return math.sqrt(squares)

    def count(self) -> int:
        """How many scalars of all ranks the optimizer may change."""
        return round(over_ranks(self._weights, lambda _, weight: float(weight.numel())))


def _gradient(_: str, weight: torch.nn.Parameter) -> float:
    """Sum of squares of what is held as the gradient of ``weight``, in Megatron's buffer and beside it."""
    held = (getattr(weight, "main_grad", None), weight.grad)
    return sum(float(one.double().square().sum()) for one in held if one is not None)


def over_ranks(
    weights: dict[str, torch.nn.Parameter], measure: Callable[[str, torch.nn.Parameter], float]
) -> float:
    """The sum of ``measure`` over the parameters of all ranks; one that several ranks hold counts once."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import param_is_not_tensor_parallel_duplicate
    from megatron.core.transformer.module import param_is_not_shared

    dense = experts = 0.0
    for name, weight in weights.items():
        if not (param_is_not_shared(weight) and param_is_not_tensor_parallel_duplicate(weight)):
            continue
        if getattr(weight, "allreduce", True):
            dense += measure(name, weight)
        else:
            experts += measure(name, weight)
    if dist.get_world_size() == 1:
        return dense + experts
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    total = []
    for value, group in (
        (dense, parallel_state.get_model_parallel_group()),
        (experts, parallel_state.get_expert_tensor_model_pipeline_parallel_group()),
    ):
        one = torch.tensor([value], dtype=torch.float64, device=device)
        dist.all_reduce(one, group=group)
        total.append(float(one))
    return sum(total)
