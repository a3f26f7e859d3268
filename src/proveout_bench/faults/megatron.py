"""Faults of a Megatron provider, as a Bridge that reads a setting wrongly leaves it, and of Megatron's adapters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _rope(provider: Any) -> None:
    provider.rotary_base = 1_000_000


def _epsilon(provider: Any) -> None:
    provider.layernorm_epsilon = 1e-5


def _activation(provider: Any) -> None:
    provider.activation_func = torch.nn.functional.gelu


def _centred(provider: Any) -> None:
    provider.layernorm_zero_centered_gamma = True


def _scale(provider: Any) -> None:
    provider.softmax_scale = float(provider.hidden_size) ** -0.5


PROVIDER: dict[str, Callable[[Any], None]] = {
    "config-rope-theta": _rope,
    "config-norm-epsilon": _epsilon,
    "config-activation": _activation,
    "config-zero-centred-gamma": _centred,
    "config-attention-scale": _scale,
}


def spoil_provider(name: str, provider: Any) -> None:
    """Set what the fault ``name`` gets wrong; nothing for other names."""
    if name in PROVIDER:
        PROVIDER[name](provider)


def unbind(chunks: Any) -> None:
    """Cut every adapter out of the forward pass: its wrapped layer alone computes."""
    for chunk in chunks if isinstance(chunks, list) else [chunks]:
        for part in chunk.modules():
            if hasattr(part, "_adapter_enabled"):
                part._adapter_enabled = False
