"""The policy's weights as the Bridge exports them, under the names of the Hugging Face module that samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from proveout_bench.backends.megatron.build import Built
from proveout_cpu.torch_cuda import on_cpu

EXPERT = re.compile(
    r"(?P<layer>.*\.mlp\.experts)\.(?P<number>\d+)\.(?P<part>gate_proj|up_proj|down_proj)\.weight"
)
HALVES = ("lora_A", "lora_B")


def exported(built: Built, *, merged: bool = True) -> Iterator[tuple[str, Tensor]]:
    """Every weight, detached, on the device of the model; with the adapters in it if ``merged``.

    All ranks must go through it.
    """
    with torch.no_grad(), on_cpu():
        named = built.bridge.export_hf_weights(
            built.model, cpu=_on_cpu(built), show_progress=False, merge_adapter_weights=merged
        )
        yield from fused((item[0], item[1].detach()) for item in named)


def fused(weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The weights with the experts of a layer in two tensors, as transformers holds them: gate and up
    [E, 2 I, H], and down [E, H, I]."""
    experts: dict[str, dict[tuple[str, int], Tensor]] = {}
    for name, weight in weights:
        found = EXPERT.fullmatch(name)
        if found is None:
            yield name, weight
        else:
            experts.setdefault(found["layer"], {})[found["part"], int(found["number"])] = weight
    for layer, parts in experts.items():
        count = 1 + max(number for _, number in parts)
        gate_up = [
            torch.cat([parts["gate_proj", number], parts["up_proj", number]]) for number in range(count)
        ]
        yield f"{layer}.gate_up_proj", torch.stack(gate_up)
        yield f"{layer}.down_proj", torch.stack([parts["down_proj", number] for number in range(count)])


def changes(built: Built, scale: float) -> dict[str, Tensor]:
    """What the adapters ask for: Hugging Face name of a weight -> scale x B A, as the Bridge exports A and B.

    All ranks must call it.
    """
    with torch.no_grad(), on_cpu():
        named = built.bridge.export_adapter_weights(built.model, cpu=_on_cpu(built), show_progress=False)
        halves = {_split(item[0]): item[1].detach().clone() for item in named}
    owners = dict.fromkeys(name for name, _ in halves)
    return {f"{name}.weight": scale * halves[name, "lora_B"] @ halves[name, "lora_A"] for name in owners}


def _on_cpu(built: Built) -> bool:
    return bool(next(built.model[0].parameters()).device.type == "cpu")


def _split(name: str) -> tuple[str, str]:
    """``base_model.model.model.layers.0.mlp.up_proj.lora_A.weight`` -> the layer's plain name, and which half."""
    plain = name.removeprefix("base_model.model.")
    for half in HALVES:
        owner, found, _ = plain.partition(f".{half}")
        if found:
            return owner, half
    raise ValueError(f"{name} is no half of an adapter")


class Delivery:
    """Compares what left for the generator with what the adapters ask for."""

    def __init__(self, base: dict[str, Tensor]) -> None:
        self.base = base
        self._effect = self._delivered = self._undelivered = 0.0

    def watch(
        self, weights: Iterable[tuple[str, Tensor]], asked: dict[str, Tensor]
    ) -> Iterator[tuple[str, Tensor]]:
        """Pass ``weights`` on; then ``measure`` tells what was in them."""
        effect = sum(float(change.square().sum()) for change in asked.values())
        delivered = undelivered = 0.0
        seen = set()
        for name, weight in weights:
            change = asked.get(name)
            if change is not None:
                seen.add(name)
                sent = weight - self.base[name]
                delivered += float(sent.square().sum())
                undelivered += float((sent - change).square().sum())
            yield name, weight
        undelivered += sum(float(asked[name].square().sum()) for name in asked.keys() - seen)
        self._effect, self._delivered, self._undelivered = effect**0.5, delivered**0.5, undelivered**0.5

    def measure(self) -> dict[str, float]:
        """L2 norms over all adapted weights: asked for, sent, and the difference."""
        return {
            "lora/effect_norm": self._effect,
            "lora/delivered_norm": self._delivered,
            "lora/undelivered_norm": self._undelivered,
        }


def trainable(model: Any) -> dict[str, torch.nn.Parameter]:
    """This rank's parameters that the optimizer may change, by Megatron's names."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
