"""Micro batches by a budget of tokens: rows of like length together, padding cut off.

The budget counts padded tokens, rows times the longest sequence, as dynamic batching in NeMo-RL and verl does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from proveout_bench.batch import Batch


@dataclass(frozen=True)
class MicroBatch:
    """The rows ``index`` int64 [b] of a batch, cut to their longest prompt and response."""

    index: Tensor
    batch: Batch

    @property
    def tokens(self) -> int:
        """Padded tokens."""
        return int(self.batch.input_ids.numel())

    @property
    def steps(self) -> int:
        """Longest response."""
        return int(self.batch.response_mask.shape[1])


def split(batch: Batch, index: Tensor, budget: int) -> list[MicroBatch]:
    """The rows ``index`` int64 [n] of ``batch`` in micro batches of at most ``budget`` tokens; all as one for 0.

    A row that is longer than the budget stands alone.
    """
    if not budget or not len(index):
        return [MicroBatch(index, batch.rows(index))] if len(index) else []
    prompts = batch.prompt_mask[index].sum(dim=1)
    responses = _lengths(batch)[index]
    order = (prompts + responses).argsort(stable=True).tolist()
    found: list[list[int]] = []
    for row in order:
        group = [*found[-1], row] if found else [row]
        longest = int(prompts[group].max() + responses[group].max())
        if found and longest * len(group) <= budget:
            found[-1] = group
        else:
            found.append([row])
    return [MicroBatch(index[group], _cut(batch.rows(index[group]))) for group in found]


def _lengths(batch: Batch) -> Tensor:
    """Of each response, up to and with its last token that is no padding after the end: int64 [B]."""
    places = torch.arange(1, batch.response_mask.shape[1] + 1, device=batch.response_mask.device)
    return (batch.response_mask.gt(0).long() * places).amax(dim=1)


def _cut(batch: Batch) -> Batch:
    prompt, response = int(batch.prompt_mask.sum(dim=1).max()), int(_lengths(batch).max())
    left, end = batch.prompt_length - prompt, batch.prompt_length + response
    return replace(
        batch,
        input_ids=batch.input_ids[:, left:end],
        prompt_mask=batch.prompt_mask[:, left:],
        response_mask=batch.response_mask[:, :response],
        generation_logprobs=batch.generation_logprobs[:, :response],
    )
