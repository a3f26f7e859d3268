"""The policy updates of one step: minibatches, loss, optimizer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proveout_bench.algorithms.grpo import oracle
from proveout_bench.algorithms.grpo.loss import LossInputs, grpo_loss
from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.state import TorchRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Loss
from proveout_bench.faults import Faults


@dataclass(frozen=True)
class Piece:
    """What one minibatch showed, and how many valid tokens it had."""

    metrics: dict[str, float]
    tokens: float


class Updater:
    """Runs the minibatches of each step in an order drawn from ``seed``."""

    def __init__(self, config: Loss, backend: PolicyBackend, faults: Faults, seed: int) -> None:
        self._config, self._backend, self._faults = config, backend, faults
        self._draw = torch.Generator().manual_seed(seed)

    def run(self, step: int, batch: Batch, inputs: LossInputs) -> dict[str, float]:
        """Update the policy; the metrics of all minibatches, combined."""
        self._backend.mark()
        pieces = []
        for _ in range(self._config.epochs):
            order = torch.randperm(len(batch.input_ids), generator=self._draw)
            for index in order.split(self._config.minibatch_size):
                rows = index.to(batch.input_ids.device)
                pieces.append(self._minibatch(step, batch.rows(rows), inputs.rows(rows)))
        skipped = sum(piece.metrics.pop("skipped") for piece in pieces)
        return {
            **combine(pieces),
            "skipped_updates": skipped,
            "weight_delta": self._backend.moved(),
            "unmoved_tensors": float(self._backend.unmoved()),
        }

    def parts(self) -> dict[str, Stateful]:
        """``minibatches``: the draw of their order."""
        return {"minibatches": TorchRandom(self._draw)}

    def _minibatch(self, step: int, batch: Batch, inputs: LossInputs) -> Piece:
        metrics: dict[str, float] = {}
        masked = replace(inputs, mask=self._faults.loss_mask(inputs.mask))

        def loss(current: Tensor) -> Tensor:
            value, measured = grpo_loss(current, masked, self._faults.loss_settings(self._config))
            value = self._faults.loss(step, value, current.shape[1])
            metrics.update(measured, loss=float(value.detach()))
            metrics["loss_error_max"] = abs(metrics["loss"] - oracle.loss(current, inputs, self._config))
            return value

        update = self._backend.update(batch, loss)
        if not update.applied:
            print(
                f"WARNING: step {step}: gradient norm is {update.grad_norm}; this update is not applied",
                flush=True,
            )
        metrics["grad_leftover_max"] = update.leftover
        metrics.update(grad_norm=update.grad_norm, lr=update.lr, skipped=float(not update.applied))
        return Piece(metrics, float(inputs.mask.sum()))


def combine(pieces: list[Piece]) -> dict[str, float]:
    """Token-weighted means, but the extreme of ``_min`` and ``_max`` and the last ``lr``. NaN stays NaN."""
    total = sum(piece.tokens for piece in pieces) or 1.0
    combined = {}
    for name in pieces[0].metrics:
        values = [piece.metrics[name] for piece in pieces]
        if any(math.isnan(value) for value in values):
            combined[name] = math.nan
        elif name.endswith("_min"):
            combined[name] = min(values)
        elif name.endswith("_max"):
            combined[name] = max(values)
        elif name == "lr":
            combined[name] = values[-1]
        else:
            combined[name] = (
                sum(value * piece.tokens for value, piece in zip(values, pieces, strict=True)) / total
            )
    return combined
