"""Where a Megatron model that was imported wrongly first computes something else than the original.

A wrong mapping that the export turns round again leaves every exported weight equal; only what the layers compute
shows it. Written for the decoder layers of the families on the allow-list, on one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from proveout_bench.backends.megatron.build import Built
from proveout_cpu.torch_cuda import on_cpu

RTOL = 1e-4


def first_differing(built: Built, original: Any, ids: Tensor) -> list[str]:
    """One text for each weight of the first place whose output differs, in the order in which layers run."""
    model = built.model[0].module
    ours, theirs = _Recorder(), _Recorder()
    with torch.no_grad(), on_cpu(), ours.watching(model), theirs.watching(original):
        device = next(model.parameters()).device
        places = torch.arange(ids.shape[1], device=device).expand(len(ids), -1).contiguous()
        model(ids.to(device), places, None)
        original(input_ids=ids, use_cache=False)
    for place in _places(len(model.decoder.layers)):
        found = [text for name, pair in place(ours, theirs, built.settings) if (text := _apart(name, *pair))]
        if found:
            return found
    return []


class _Recorder:
    """The output of every named submodule, in the layout [B, S, ...]."""

    def __init__(self) -> None:
        self.seen: dict[str, Tensor] = {}

    def watching(self, model: torch.nn.Module) -> Any:
        import contextlib

        stack = contextlib.ExitStack()
        for name, part in model.named_modules():
            handle = part.register_forward_hook(lambda _, __, output, name=name: self._keep(name, output))
            stack.callback(handle.remove)
        return stack

    def _keep(self, name: str, output: Any) -> None:
        value = output[0] if isinstance(output, tuple) else output
        if isinstance(value, Tensor):
            self.seen[name] = value.detach().float().cpu()


Pair = tuple[Tensor | None, Tensor | None]
Place = Callable[[_Recorder, _Recorder, Any], Iterator[tuple[str, Pair]]]


def _places(layers: int) -> Iterator[Place]:
    yield _same("embedding", "model.embed_tokens")
    for number in range(layers):
        ours, theirs = f"decoder.layers.{number}", f"model.layers.{number}"
        yield _same(f"{ours}.input_layernorm", f"{theirs}.input_layernorm")
        yield _heads(f"{ours}.self_attention.linear_qkv", f"{theirs}.self_attn")
        yield _same(f"{ours}.self_attention", f"{theirs}.self_attn", ".o_proj")
        yield _same(f"{ours}.pre_mlp_layernorm", f"{theirs}.post_attention_layernorm")
        yield _gated(f"{ours}.mlp.linear_fc1", f"{theirs}.mlp")
        yield _same(f"{ours}.mlp", f"{theirs}.mlp", ".down_proj")
    yield _same("decoder.final_layernorm", "model.norm")
    yield _same("output_layer", "lm_head")


def _same(ours: str, theirs: str, weight: str = "") -> Place:
    def place(mine: _Recorder, other: _Recorder, _: Any) -> Iterator[tuple[str, Pair]]:
        found, wanted = mine.seen.get(ours), other.seen.get(theirs)
        if found is not None and wanted is not None and found.shape != wanted.shape:
            found = found.transpose(0, 1)
        yield f"{theirs}{weight}.weight", (found, wanted)

    return place


def _heads(ours: str, theirs: str) -> Place:
    """Megatron's joint projection holds, for each group, its query heads, then its key and its value head."""

    def place(mine: _Recorder, other: _Recorder, settings: Any) -> Iterator[tuple[str, Pair]]:
        joint = mine.seen.get(ours)
        groups, size = settings.num_query_groups or settings.num_attention_heads, settings.kv_channels
        parts: dict[str, Tensor | None] = {"q_proj": None, "k_proj": None, "v_proj": None}
        if joint is not None:
            by_group = joint.transpose(0, 1).unflatten(-1, (groups, -1))
            queries = by_group.shape[-1] - 2 * size
            split = by_group.split([queries, size, size], dim=-1)
            parts = {name: part.flatten(-2) for name, part in zip(parts, split, strict=True)}
        for name, part in parts.items():
            yield f"{theirs}.{name}.weight", (part, other.seen.get(f"{theirs}.{name}"))

    return place


def _gated(ours: str, theirs: str) -> Place:
    def place(mine: _Recorder, other: _Recorder, _: Any) -> Iterator[tuple[str, Pair]]:
        joint = mine.seen.get(ours)
        if joint is not None:
            gate, up = joint.transpose(0, 1).chunk(2, dim=-1)
            yield f"{theirs}.gate_proj.weight", (gate, other.seen.get(f"{theirs}.gate_proj"))
            yield f"{theirs}.up_proj.weight", (up, other.seen.get(f"{theirs}.up_proj"))

    return place


def _apart(name: str, found: Tensor | None, wanted: Tensor | None) -> str:
    if found is None or wanted is None or found.shape != wanted.shape:
        return ""
    difference = float((found - wanted).abs().max())
    if difference <= RTOL * float(wanted.abs().max()):
        return ""
    return f"{name}: what its layer computes differs by {difference:.3g} at most, first of all layers"
