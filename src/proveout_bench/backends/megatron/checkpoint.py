"""Model and optimizer in Megatron's own distributed checkpoint format, one folder for all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from proveout_bench.backends.megatron.build import Built
from proveout_bench.backends.megatron.optimize import MegatronOptimizer
from proveout_bench.errors import ConfigError
from proveout_cpu.torch_cuda import on_cpu

MODEL, OPTIMIZER = "model", "optimizer"


class Sharded:
    """The part ``policy`` of a checkpoint: every rank writes and reads its share."""

    def __init__(self, built: Built, optimizer: MegatronOptimizer) -> None:
        self._model, self._optimizer = built.model[0].module, optimizer.inner
        self._strict = built.lora is None

    def save_to(self, folder: Path) -> None:
        """Write into the directory ``folder``, which is there and empty."""
        from megatron.core import dist_checkpointing

        with on_cpu():
            dist_checkpointing.save(self._described(), str(folder))

    def load_from(self, folder: Path, leave_out: str = "") -> None:
        """Read it back, but for ``leave_out`` (policy or optimizer). ConfigError where it does not fit."""
        from megatron.core import dist_checkpointing
        from megatron.core.dist_checkpointing.core import CheckpointingException

        try:
            with torch.no_grad(), on_cpu():
                asked = self._described(MODEL if leave_out == "policy" else leave_out, loading=True)
                state = dist_checkpointing.load(asked, str(folder))
                if leave_out != "policy":
                    self._model.load_state_dict(state[MODEL], strict=self._strict)
                if leave_out != OPTIMIZER:
                    self._optimizer.load_state_dict(state[OPTIMIZER])
        except CheckpointingException as error:
            raise ConfigError(f"{folder}: does not fit this run: {error}") from error

    def _described(self, leave_out: str = "", loading: bool = False) -> dict[str, Any]:
        """Where each part lies; to describe an optimizer's for loading makes its state anew."""
        model = self._model.sharded_state_dict()
        found = {} if leave_out == MODEL else {MODEL: model}
        if leave_out != OPTIMIZER:
            found[OPTIMIZER] = self._optimizer.sharded_state_dict(model, is_loading=loading)
        return found


class Schedule:
    """The part ``scheduler``: how many updates were made."""

    def __init__(self, optimizer: MegatronOptimizer) -> None:
        self._inner = optimizer.schedule

    def state_dict(self) -> dict[str, Any]:
        """As Megatron's scheduler writes it."""
        return dict(self._inner.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._inner.num_steps = 0
        self._inner.load_state_dict(state)
