"""Training all weights of a transformers model whose layers are sharded over ``runtime.tp`` ranks.

torch's own tensor parallelism (``torch.distributed.tensor.parallel``), by the plan that the model's configuration
ships (``base_model_tp_plan``). Embeddings, norms and the output layer are whole on every rank.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from proveout_bench import ranks
from proveout_bench.backends.full import Weights, reload, reloaded_error, save
from proveout_bench.backends.whole import sharded, whole
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.errors import ConfigError
from proveout_bench.faults import Faults


class TensorParallelModel:
    """A sharded copy of ``model``, which itself stays whole; the reference is a sharded copy of its own."""

    def __init__(self, model: torch.nn.Module, faults: Faults) -> None:
        self._plain: Any = model
        self.module: Any = shard(copy.deepcopy(model))
        faults.sharded(self.module)
        self._reference = shard(copy.deepcopy(model)).requires_grad_(False)
        self.trainable = [weight for weight in self.module.parameters() if weight.requires_grad]

    @contextmanager
    def reference(self) -> Iterator[torch.nn.Module]:
        """The model as it was at the start."""
        yield self._reference

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All parameters, gathered from the ranks; each rank must go through them."""
        return ((name, whole(weight.detach())) for name, weight in self.module.named_parameters())

    def part(self) -> Stateful:
        """All weights, whole."""
        return WholeWeights(self.module)

    def measure(self) -> dict[str, float]:
        """``tensor_parallel/sharded_share``: the share of the scalars of which a rank holds a part alone."""
        count = sum(weight.numel() for weight in self.trainable)
        split = sum(weight.numel() for weight in self.trainable if sharded(weight))
        return {"tensor_parallel/ranks": float(ranks.world()), "tensor_parallel/sharded_share": split / count}

    def export(self, folder: Path) -> None:
        """One Hugging Face checkpoint of the gathered weights, written by rank 0."""
        gathered = dict(self.weights())
        if ranks.first():
            plain = copy.deepcopy(self._plain)
            Weights(plain).load_state_dict(gathered)
            save(plain, folder)
        ranks.barrier()

    def export_errors(self, folder: Path, batch: Batch, temperature: float) -> dict[str, float]:
        """``export/logprob_error`` in nats."""
        return {"logprob_error": reloaded_error(self.module, reload(folder, self._plain), batch, temperature)}


def shard(model: Any) -> Any:
    """``model`` with its layers spread over all ranks, in place. ConfigError for a plan that torch has no style for."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    styles: dict[str, Callable[[], Any]] = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}
    given = model.config.base_model_tp_plan or {}
    unknown = sorted({style for style in given.values() if style not in styles})
    if unknown or not given:
        raise ConfigError(
            f"runtime.tp={ranks.world()}: {model.config.model_type} has "
            + (f"layers of style {unknown[0]}" if unknown else "no plan for tensor parallelism")
            + "; backend hf shards by colwise and rowwise layers alone"
        )
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size"):
        if getattr(model.config, name) % ranks.world():
            raise ConfigError(
                f"runtime.tp={ranks.world()} must divide {name}={getattr(model.config, name)} of the model"
            )
    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.world(),))
    parallelize_module(model.base_model, mesh, {name: styles[style]() for name, style in given.items()})
    return model


def like(value: Tensor, weight: Any) -> Tensor:
    """The whole ``value``, the same on all ranks, sharded as ``weight`` is."""
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(weight.device), weight.device_mesh, weight.placements)


class WholeWeights:
    """The parameters of a sharded module as a part of a checkpoint that a run without ranks reads too."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def state_dict(self) -> dict[str, Any]:
        """Whole tensors by name."""
        return {name: whole(weight.detach()) for name, weight in self._module.named_parameters()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take each rank's shards."""
        own = dict(self._module.named_parameters())
        Weights(self._module).load_state_dict(
            {
                name: like(value, own[name]) if name in own and sharded(own[name]) else value
                for name, value in state.items()
            }
        )


class WholeOptimizer:
    """The state of an optimizer over sharded weights, whole in the checkpoint."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """As torch's, gathered."""
        state = self._optimizer.state_dict()
        gathered = {
            number: {key: whole(value) if isinstance(value, Tensor) else value for key, value in own.items()}
            for number, own in state["state"].items()
        }
        return {**state, "state": gathered}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As torch's, then sharded as the weights are."""
        self._optimizer.load_state_dict(state)
        for weight, own in self._optimizer.state.items():
            for key, value in own.items():
                if sharded(weight) and isinstance(value, Tensor) and value.shape == weight.shape:
                    own[key] = like(value, weight)
