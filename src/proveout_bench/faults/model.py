"""Faults of import and of configuration: each spoils the loaded policy as a wrong mapping or provider would."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Model = Any


def _layer(model: Model, number: int = 0) -> Any:
    return model.model.layers[number]


def swapped_qk(model: Model) -> None:
    """Key rows and the first query rows of one layer change places."""
    attention = _layer(model).self_attn
    for kind in ("weight", "bias"):
        query, key = getattr(attention.q_proj, kind), getattr(attention.k_proj, kind)
        _swap(query[: len(key)], key)


def missing_bias(model: Model) -> None:
    """The query bias of one layer is not mapped and stays 0."""
    _layer(model).self_attn.q_proj.bias.zero_()


def transposed(model: Model) -> None:
    """A square weight is taken over transposed."""
    weight = _layer(model).self_attn.o_proj.weight
    weight.copy_(weight.t().clone())


def wrong_shard(model: Model) -> None:
    """Two halves of a column-parallel weight are put together the wrong way round."""
    weight = _layer(model).mlp.gate_proj.weight
    half = len(weight) // 2
    _swap(weight[:half], weight[half:])


def unmapped(model: Model) -> None:
    """One weight is never loaded and keeps what it was initialised with."""
    weight = _layer(model, -1).mlp.down_proj.weight
    weight.copy_(torch.empty_like(weight).normal_(0.0, 0.02, generator=torch.Generator().manual_seed(1)))


def tied_lost(model: Model) -> None:
    """The output layer is no longer the embedding, and was initialised by itself."""
    head = torch.nn.Linear(model.lm_head.in_features, model.lm_head.out_features, bias=False)
    head.weight.data.normal_(0.0, 0.02, generator=torch.Generator().manual_seed(2))
    model.lm_head = head
    model.config.tie_word_embeddings = False


def gate_up_swapped(model: Model) -> None:
    """The two halves of a fused gate-and-up weight are taken for each other."""
    mlp = _layer(model).mlp
    _swap(mlp.gate_proj.weight, mlp.up_proj.weight)


def layers_swapped(model: Model) -> None:
    """Two layers change places, as with a wrong offset of a pipeline stage."""
    for one, other in zip(_layer(model, 0).parameters(), _layer(model, 1).parameters(), strict=True):
        _swap(one, other)


def experts_shifted(model: Model) -> None:
    """Experts are numbered from another rank's first: each gets its neighbour's weights."""
    experts = _layer(model).mlp.experts
    stacked = [weight for weight in experts.parameters() if weight.dim() == 3]
    if stacked:
        for weight in stacked:
            weight.copy_(weight.roll(1, dims=0))
        return
    _swap_all(list(experts[0].parameters()), list(experts[1].parameters()))


def router_unmapped(model: Model) -> None:
    """The router of one layer is not loaded: 0 for every expert."""
    _layer(model).mlp.gate.weight.zero_()


def rope_theta(model: Model) -> None:
    """Rotary frequencies of base 1,000,000 in place of the model's."""
    rotary = model.model.rotary_emb
    count = len(rotary.inv_freq)
    wrong = 1_000_000.0 ** (-torch.arange(count, dtype=torch.float32) / count)
    for name in ("inv_freq", "original_inv_freq"):
        if isinstance(getattr(rotary, name, None), Tensor):
            getattr(rotary, name).copy_(wrong)


def norm_epsilon(model: Model) -> None:
    """An epsilon of 1e-5 in place of 1e-6 in every norm."""
    for part in model.modules():
        if hasattr(part, "variance_epsilon"):
            part.variance_epsilon = 1e-5


def activation(model: Model) -> None:
    """GELU in place of SiLU."""
    for part in model.modules():
        if hasattr(part, "act_fn"):
            part.act_fn = torch.nn.GELU()


def zero_centred(model: Model) -> None:
    """Norm weights are taken as offsets from 1."""
    for name, weight in model.named_parameters():
        if name.endswith("norm.weight"):
            weight.add_(1.0)


def attention_scale(model: Model) -> None:
    """Scores are divided by the root of the hidden size, not of the head's size."""
    for part in model.modules():
        if hasattr(part, "scaling") and hasattr(part, "q_proj"):
            part.scaling = float(model.config.hidden_size) ** -0.5


def _swap(one: Tensor, other: Tensor) -> None:
    kept = one.clone()
    one.copy_(other)
    other.copy_(kept)


def _swap_all(ones: list[Tensor], others: list[Tensor]) -> None:
    for one, other in zip(ones, others, strict=True):
        _swap(one, other)


MODEL: dict[str, Callable[[Model], None]] = {
    "mapping-swapped-qk": swapped_qk,
    "mapping-missing-bias": missing_bias,
    "mapping-transposed": transposed,
    "mapping-wrong-shard": wrong_shard,
    "mapping-unmapped": unmapped,
    "mapping-tied-lost": tied_lost,
    "mapping-gate-up-swapped": gate_up_swapped,
    "mapping-layers-swapped": layers_swapped,
    "mapping-expert-order": experts_shifted,
    "mapping-router-unmapped": router_unmapped,
    "config-rope-theta": rope_theta,
    "config-norm-epsilon": norm_epsilon,
    "config-activation": activation,
    "config-zero-centred-gamma": zero_centred,
    "config-attention-scale": attention_scale,
}


def spoiled(name: str, model: torch.nn.Module) -> torch.nn.Module:
    """A copy of ``model`` with the fault ``name``; ``model`` itself where no fault of this group has that name."""
    if name not in MODEL:
        return model
    wrong = copy.deepcopy(model)
    with torch.no_grad():
        MODEL[name](wrong)
    return wrong


def swap_shards(model: Model) -> None:
    """Of one column-parallel weight each of two ranks holds the other's shard."""
    weight = _layer(model).mlp.gate_proj.weight
    parts = weight.detach().full_tensor().chunk(weight.device_mesh.size())
    with torch.no_grad():
        weight.to_local().copy_(parts[weight.device_mesh.get_local_rank() - 1])
