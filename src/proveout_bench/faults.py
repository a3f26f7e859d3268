"""Defects that a run carries on purpose, so that whoever judges it can be tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proveout_bench.config.schema import Fault

if TYPE_CHECKING:
    from torch import Tensor


class Faults:
    """One method for each seam where a defect can enter; without a fault each returns its argument."""

    def __init__(self, config: Fault) -> None:
        self._config = config

    def loss(self, step: int, value: Tensor) -> Tensor:
        """The scalar loss of one minibatch, just before its backward pass."""
        return value * float("nan") if step == self._config.nan_loss_at_step else value
