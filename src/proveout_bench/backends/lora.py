"""Training low-rank adapters (peft) on a frozen base, which is the reference too."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from proveout_bench.backends.full import Weights, reload, reloaded_error, save
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Lora
from proveout_bench.errors import ConfigError
from proveout_bench.faults import Faults

ADAPTER, LORA = "default", ".lora_"
ADAPTER_FOLDER = "adapter"


class LoraModel:
    """Adapters on a copy of ``model``, which itself stays as it is."""

    def __init__(self, config: Lora, model: torch.nn.Module, faults: Faults, seed: int) -> None:
        from peft import LoraConfig, get_peft_model

        targets = [name.strip() for name in config.targets.split(",") if name.strip()]
        settings = LoraConfig(
            r=config.rank,
            lora_alpha=config.alpha,
            target_modules=targets,
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                self._peft: Any = get_peft_model(copy.deepcopy(model), settings)
            except ValueError as error:
                raise ConfigError(f"lora.targets={config.targets}: no adapter can be made: {error}") from None
        self._peft.eval()
        self.module: Any = self._peft.get_base_model()
        self._faults = faults
        self._adapted = {name: part for name, part in self.module.named_modules() if hasattr(part, "lora_A")}
        self.trainable = [weight for weight in self.module.parameters() if weight.requires_grad]
        faults.adapter(self.trainable)
        for part in self._adapted.values():
            part.scaling[ADAPTER] = faults.scaling(part.scaling[ADAPTER])
        self._effect = self._delivered = self._undelivered = 0.0

    @contextmanager
    def reference(self) -> Iterator[torch.nn.Module]:
        """The base: the same module with its adapters off."""
        with self._peft.disable_adapter():
            yield self.module

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights of the base under their own names, the adapters merged into them.

        What was taken from here is compared with what the adapters ask for; ``measure`` tells it.
        """
        effect, delivered, undelivered = 0.0, 0.0, 0.0
        for name, base, change in self._named():
            if change is None:
                yield name, base
                continue
            sent = self._faults.delivered(base + change, base, name)
            effect += float(change.square().sum())
            delivered += float((sent - base).square().sum())
            undelivered += float((sent - base - change).square().sum())
            yield name, sent
        self._effect, self._delivered, self._undelivered = effect**0.5, delivered**0.5, undelivered**0.5

    def part(self) -> Stateful:
        """The adapters' weights; the base is what the run was started from."""
        return Weights(self.module, only=LORA)

    def measure(self) -> dict[str, float]:
        """L2 norms over all adapted weights at the last ``weights``: asked for, sent, and the difference."""
        return {
            "lora/effect_norm": self._effect,
            "lora/delivered_norm": self._delivered,
            "lora/undelivered_norm": self._undelivered,
        }

    def export(self, folder: Path) -> None:
        """The merged checkpoint in ``folder``, and the adapter alone in ``folder``/adapter."""
        whole: Any = copy.deepcopy(self._peft)
        for part in whole.get_base_model().modules():
            if hasattr(part, "lora_A"):
                part.scaling[ADAPTER] = self._faults.exported_scale(part.scaling[ADAPTER])
        save(whole.merge_and_unload(), folder)
        self._peft.save_pretrained(str(folder / ADAPTER_FOLDER))

    def export_errors(self, folder: Path, batch: Batch, temperature: float) -> dict[str, float]:
        """``logprob_error`` of the merged checkpoint and ``adapter_logprob_error`` of base and adapter, in nats."""
        from peft import PeftModel

        base: Any = copy.deepcopy(self._peft).unload()
        adapted: Any = PeftModel.from_pretrained(base, str(folder / ADAPTER_FOLDER)).eval()
        return {
            "logprob_error": reloaded_error(self.module, reload(folder, self.module), batch, temperature),
            "adapter_logprob_error": reloaded_error(
                self.module, adapted.get_base_model(), batch, temperature
            ),
        }

    def _named(self) -> Iterator[tuple[str, Tensor, Tensor | None]]:
        """Name, base weight, and the change that an adapter makes to it."""
        for name, weight in self.module.named_parameters():
            if LORA in name:
                continue
            plain = name.replace(".base_layer", "")
            owner = self._adapted.get(plain.removesuffix(".weight")) if name != plain else None
            change = None if owner is None else owner.get_delta_weight(ADAPTER).detach()
            yield plain, weight.detach(), change
