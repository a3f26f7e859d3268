"""The critic: a value for each response token, from a network of its own, and its clipped update."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from proveout_bench.algorithms.grpo.train import Piece, combine
from proveout_bench.backends.full import Weights
from proveout_bench.backends.optimizer import Optimizer
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.state import TorchRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import PpoConfig
from proveout_bench.faults import Faults
from proveout_bench.forward import padding_arguments
from proveout_bench.metrics.formulas import masked_mean


class ValueModel:
    """The trunk of a causal language model and a linear head that begins at 0."""

    def __init__(self, model: torch.nn.Module) -> None:
        whole: Any = copy.deepcopy(model)
        head = torch.nn.Linear(int(whole.config.get_text_config().hidden_size), 1)
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.zeros_(head.bias)
        self.module: Any = torch.nn.ModuleDict({"trunk": whole.base_model, "head": head})
        self.module.to(next(model.parameters()).device).eval().requires_grad_(True)

    def values(self, batch: Batch) -> Tensor:
        """The value of the state before each response token, float32 [B, T]."""
        steps = batch.response_mask.shape[1]
        outputs = self.module["trunk"](
            input_ids=batch.input_ids, use_cache=False, **padding_arguments(batch.prompt_mask, steps)
        )
        values: Tensor = self.module["head"](outputs.last_hidden_state[:, -steps - 1 : -1].float()).squeeze(
            -1
        )
        return values


def value_loss(values: Tensor, old: Tensor, returns: Tensor, mask: Tensor, clip: float) -> Tensor:
    """Half the mean of the larger of two squared errors, the second with ``values`` kept near ``old`` ([b, T]).

    As in the PPO implementation of OpenAI baselines (ppo2/model.py).
    """
    near = old + (values - old).clamp(-clip, clip)
    worse = torch.maximum((values - returns).square(), (near - returns).square())
    return 0.5 * masked_mean(worse, mask)


class Critic:
    """A value model that starts from ``model``, with its own optimizer and order of minibatches."""

    def __init__(self, config: PpoConfig, model: torch.nn.Module) -> None:
        self._config = config
        self._model = ValueModel(model)
        self._optimizer = Optimizer(
            list(self._model.module.parameters()),
            Faults(config.fault).critic_rate(config.critic.lr),
            config.optimizer,
            Faults(config.fault),
        )
        self._draw = torch.Generator().manual_seed(config.seed + 1)

    def values(self, batch: Batch) -> Tensor:
        """Values as they are now, float32 [B, T], without gradient; 0 on invalid tokens."""
        with torch.no_grad():
            return self._model.values(batch) * batch.response_mask

    def update(self, batch: Batch, old: Tensor, returns: Tensor) -> dict[str, float]:
        """Minibatch updates towards ``returns``; the metrics, named without the prefix ``critic/``."""
        self._optimizer.mark()
        pieces = [
            self._minibatch(batch.rows(rows), old[rows], returns[rows]) for rows in self._minibatches(batch)
        ]
        mask = batch.response_mask
        spread = masked_mean((returns - masked_mean(returns, mask)).square(), mask)
        left = masked_mean((returns - old).square(), mask)
        return {
            **combine(pieces),
            "values_mean": float(masked_mean(old, mask)),
            "returns_mean": float(masked_mean(returns, mask)),
            "explained_variance": float(1.0 - left / spread.clamp_min(1e-8)),
            "weight_delta": self._optimizer.moved(),
        }

    def parts(self) -> dict[str, Stateful]:
        """Weights, optimizer, schedule and order of the critic."""
        own = {f"critic_{name}": part for name, part in self._optimizer.parts().items()}
        return {"critic": Weights(self._model.module), **own, "critic_minibatches": TorchRandom(self._draw)}

    def _minibatches(self, batch: Batch) -> Iterator[Tensor]:
        for _ in range(self._config.critic.epochs):
            order = torch.randperm(len(batch.input_ids), generator=self._draw)
            for rows in order.split(self._config.loss.minibatch_size):
                yield rows.to(batch.input_ids.device)

    def _minibatch(self, batch: Batch, old: Tensor, returns: Tensor) -> Piece:
        mask, clip = batch.response_mask, self._config.critic.clip
        measured: dict[str, float] = {}

        def loss() -> Tensor:
            values = self._model.values(batch)
            value = value_loss(values, old, returns, mask, clip)
            clipped = ((values.detach() - old).abs() > clip).float()
            measured.update(loss=float(value.detach()), clip_share=float(masked_mean(clipped, mask)))
            return value

        update = self._optimizer.step(lambda: loss().backward())
        return Piece({**measured, "grad_norm": update.grad_norm, "lr": update.lr}, float(mask.sum()))
