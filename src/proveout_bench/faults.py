"""Defects that a run carries on purpose, so that whoever judges it can be tested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from proveout_bench.config.schema import Fault

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from proveout_bench.batch import Batch


class Faults:
    """One method for each seam where a defect can enter; without a fault each does nothing but its work."""

    def __init__(self, config: Fault) -> None:
        self._config = config
        self._updates: dict[int, int] = {}

    @classmethod
    def none(cls) -> Faults:
        """No defect at all."""
        return cls(Fault())

    def loss(self, step: int, value: Tensor, tokens: int) -> Tensor:
        """The scalar loss of one minibatch whose responses have ``tokens`` columns, before its backward pass.

        NaN at ``nan_loss_at_step``; with responses longer than ``nan_beyond_tokens``, as a kernel with too small
        a buffer gives; from the second update of a step on with ``nan_second_update``.
        """
        updates = self._updates[step] = self._updates.get(step, 0) + 1
        spoiled = (
            step == self._config.nan_loss_at_step
            or 0 < self._config.nan_beyond_tokens < tokens
            or (self._config.nan_second_update and updates > 1)
        )
        return value * float("nan") if spoiled else value

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

    def keeps_gradients(self) -> bool:
        """Whether the gradients pile up from update to update: ``no_zero_grad``."""
        return self._config.no_zero_grad

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

    def saved(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """The weights after they were saved; ``saving_spoils`` leaves NaN in them, as a conversion in place can."""
        if self._config.saving_spoils:
            self._spoil(weights)

    def restored(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """The weights after they were loaded from a checkpoint; ``restoring_spoils`` leaves NaN in them."""
        if self._config.restoring_spoils:
            self._spoil(weights)

    def scored(self, batch: Batch) -> Batch:
        """The rollout as the policy scores it; ``padding_ignored`` takes padding for prompt."""
        if not self._config.padding_ignored:
            return batch
        return replace(batch, prompt_mask=batch.prompt_mask | True)

    def temperature(self, value: float) -> float:
        """The temperature at which the policy scores; ``temperature_ignored`` makes it 1."""
        return 1.0 if self._config.temperature_ignored else value

    def reference(self, logprobs: Tensor, weight: float) -> Tensor:
        """The reference policy's logprobs, float32 [B, T]; NaN with ``reference_nan`` where ``weight`` uses them."""
        return logprobs * float("nan") if self._config.reference_nan and weight > 0 else logprobs

    def previous(self, logprobs: Tensor, threads: int) -> Tensor:
        """The policy's logprobs, float32 [B, T]; ``threads_race`` loses every second row with several threads."""
        if not self._config.threads_race or threads < 2:
            return logprobs
        lost = logprobs.clone()
        lost[::2] = 0.0
        return lost

    @staticmethod
    def _spoil(weights: Iterable[tuple[str, Tensor]]) -> None:
        for _, weight in weights:
            weight.fill_(float("nan"))
