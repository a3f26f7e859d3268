"""Training all weights of a transformers model, with a frozen copy as the reference."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.errors import ConfigError
from proveout_bench.forward import response_logprobs


class FullModel:
    """Trains ``model`` itself."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.module: Any = model
        self._reference = copy.deepcopy(model).requires_grad_(False)
        self.trainable = [weight for weight in model.parameters() if weight.requires_grad]

    @contextmanager
    def reference(self) -> Iterator[torch.nn.Module]:
        """The model as it was at the start of the first run."""
        yield self._reference

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All parameters, detached; a tied one once."""
        return ((name, weight.detach()) for name, weight in self.module.named_parameters())

    def part(self) -> Stateful:
        """All weights."""
        return Weights(self.module)

    def measure(self) -> dict[str, float]:
        """Nothing besides."""
        return {}

    def export(self, folder: Path) -> None:
        """One Hugging Face checkpoint."""
        save(self.module, folder)

    def export_errors(self, folder: Path, batch: Batch, temperature: float) -> dict[str, float]:
        """``export/logprob_error`` in nats."""
        return {"logprob_error": reloaded_error(self.module, reload(folder, self.module), batch, temperature)}


class Weights:
    """The parameters of a module as a part of a checkpoint, a tied one once; those with ``only`` in the name."""

    def __init__(self, module: torch.nn.Module, only: str = "") -> None:
        self._weights = {name: weight for name, weight in module.named_parameters() if only in name}

    def state_dict(self) -> dict[str, Any]:
        """Tensors by name."""
        return {name: weight.detach() for name, weight in self._weights.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy them in place. ConfigError where the names differ, before anything is copied."""
        if unknown := self._weights.keys() ^ state.keys():
            raise ConfigError(f"the checkpoint has other weights than the model, such as {min(unknown)}")
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(state[name])


def save(model: Any, folder: Path) -> None:
    """Write a transformers model, quietly."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model.save_pretrained(folder)


def reload(folder: Path, like: torch.nn.Module) -> torch.nn.Module:
    """The exported checkpoint, loaded as anyone would load it, on the device of ``like``."""
    return load_exported(folder).to(next(like.parameters()).device)


def load_exported(folder: Path) -> torch.nn.Module:
    """The exported checkpoint, float32 on the CPU."""
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model: Any = AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True, dtype=torch.float32)
    return model.eval()


def reloaded_error(ours: torch.nn.Module, theirs: torch.nn.Module, batch: Batch, temperature: float) -> float:
    """Largest absolute difference of log-probabilities on the valid tokens of ``batch``."""
    with torch.no_grad():
        apart = response_logprobs(ours, batch, temperature) - response_logprobs(theirs, batch, temperature)
    return float((apart.abs() * batch.response_mask).max())
