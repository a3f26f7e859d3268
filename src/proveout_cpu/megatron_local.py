"""Repairs for loops that build Megatron models through a provider whose settings they do not hand out.

The bench loop sets its provider's fields itself; verl and NeMo-RL take Transformer Engine's layers and its packed
attention for granted.
"""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

from proveout_cpu import megatron
from proveout_cpu.repair import Repair, expect, rebind, repair


def install() -> None:
    """Prepare this process for Megatron as verl and NeMo-RL import it: newer trees import state-space layers too."""
    megatron.apply(state_space=True)


@repair(
    "megatron.bridge.models.gpt_provider",
    "megatron/bridge/models/gpt_provider.py",
    "the default layers are Transformer Engine's",
)
def local_layers(module: ModuleType) -> None:
    """A provider that asks for Transformer Engine's layers gets Megatron's own."""
    expect(module, "transformer_engine_layer_spec", parameters=("config",))
    rebind(
        module, "transformer_engine_layer_spec", expect(module, "local_layer_spec", parameters=("config",))
    )


@repair(
    "megatron.core.transformer.dot_product_attention",
    "megatron/core/transformer/dot_product_attention.py",
    "the local attention takes no packed sequences; Transformer Engine's does",
)
def packed_attention(module: ModuleType) -> None:
    """Causal attention by torch's scaled_dot_product_attention: of each sequence alone where sequences are packed
    (cu_seqlens, as PackedSeqParams has them), and as Megatron's own everywhere else."""
    plain = expect(
        module,
        "DotProductAttention.forward",
        "Packed sequence is not supported by DotProductAttention",
        parameters=("self", "query", "key", "value", "attention_mask", "attn_mask_type", "attention_bias"),
    )

    def forward(  # noqa: PLR0917 - as upstream has them
        self: Any,
        query: Any,
        key: Any,
        value: Any,
        attention_mask: Any,
        attn_mask_type: Any = None,
        attention_bias: Any = None,
        packed_seq_params: Any = None,
        **rest: Any,
    ) -> Any:
        if packed_seq_params is None:
            return plain(
                self, query, key, value, attention_mask, attn_mask_type, attention_bias, None, **rest
            )
        _refuse_other_attention(self)
        return attend_packed(query, key, value, packed_seq_params, self.softmax_scale)

    module.DotProductAttention.forward = forward


def _refuse_other_attention(layer: Any) -> None:
    """Raise NotImplementedError where the layer is no plain causal attention: left out, results would be wrong."""
    offset = getattr(layer, "softmax_offset", None) is not None
    window = getattr(layer.scale_mask_softmax, "window_size", None)
    dropout = layer.training and layer.attention_dropout.p > 0
    if offset or window or dropout:
        what = "a window" if window else "dropout" if dropout else "a softmax offset"
        raise NotImplementedError(f"proveout_cpu: packed attention with {what} has no stand-in on a CPU")


def attend_packed(query: Any, key: Any, value: Any, packed: Any, scale: float) -> Any:
    """``query`` [tokens, (1,) heads, size], ``key`` and ``value`` with as many heads or a divisor of them ->
    [tokens, (1,) heads * size]; token i sees the tokens before it of its own sequence."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    batched = query.dim() == 4
    q, k, v = (tensor.squeeze(1) if batched else tensor for tensor in (query, key, value))
    bounds = packed.cu_seqlens_q_padded if packed.cu_seqlens_q_padded is not None else packed.cu_seqlens_q
    edges = bounds.tolist()
    grouped = q.shape[1] != k.shape[1]
    parts = []
    for start, end in pairwise(edges):
        if end > start:
            one, keys, values = (tensor[start:end].transpose(0, 1)[None] for tensor in (q, k, v))
            seen = scaled_dot_product_attention(
                one, keys, values, is_causal=True, scale=scale, enable_gqa=grouped
            )
            parts.append(seen[0].transpose(0, 1))
    rest = q.new_zeros(q.shape[0] - edges[-1], *q.shape[1:])
    out = torch.cat([*parts, rest]).flatten(1)
    return out[:, None] if batched else out


REPAIRS: tuple[Repair, ...] = (local_layers, packed_attention)
