"""Defects that a run carries on purpose, so that whoever judges it can be tested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from proveout_bench.config.schema import Fault

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Faults:
    """One method for each seam where a defect can enter; without a fault each does nothing but its work."""

    def __init__(self, config: Fault) -> None:
        self._config = config

    @classmethod
    def none(cls) -> Faults:
        """No defect at all."""
        return cls(Fault())

    def loss(self, step: int, value: Tensor) -> Tensor:
        """The scalar loss of one minibatch, just before its backward pass."""
        return value * float("nan") if step == self._config.nan_loss_at_step else value

    def rewards(self, rewards: Tensor) -> Tensor:
        """Rewards float32 [B] as the loop sees them; ``constant_reward`` gives every response 0.5."""
        return rewards * 0 + 0.5 if self._config.constant_reward else rewards

    def advantages(self, advantages: Tensor) -> Tensor:
        """Advantages float32 [B, T]; ``advantage_sign`` turns them round."""
        return -advantages if self._config.advantage_sign else advantages

    def zero_grad(self, optimizer: torch.optim.Optimizer) -> None:
        """Clear the gradients; ``no_zero_grad`` lets them pile up."""
        if not self._config.no_zero_grad:
            optimizer.zero_grad(set_to_none=True)

    def adapter(self, weights: Iterable[Tensor]) -> None:
        """The adapter's weights when they are made; ``adapter_frozen`` cuts their gradients off."""
        if self._config.adapter_frozen:
            for weight in weights:
                weight.register_hook(lambda gradient: gradient * 0)

    def delivered(self, merged: Tensor, base: Tensor) -> Tensor:
        """An adapted weight on its way to the generator; ``adapter_not_delivered`` sends the base's."""
        return base if self._config.adapter_not_delivered else merged

    def exported_scale(self, scale: float) -> float:
        """The adapter's scale in an export; ``adapter_exported_without_effect`` makes it 0, as alpha 0 would."""
        return 0.0 if self._config.adapter_exported_without_effect else scale

    def resumes(self, asked: bool) -> bool:
        """Whether a resume really happens; ``resume_fresh`` starts over without a word."""
        return asked and not self._config.resume_fresh

    def left_out(self) -> str:
        """The part of a checkpoint that is not loaded: ``not_restored``, '' for none."""
        return self._config.not_restored
