"""The tensors of one rollout batch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """B sequences of P left-padded prompt tokens followed by T response tokens.

    ``input_ids`` int64 [B, P + T]; ``prompt_mask`` bool [B, P], True on real prompt tokens;
    ``response_mask`` float32 [B, T], 1 on the generated tokens up to and with the end token;
    ``generation_logprobs`` float32 [B, T] in nats, at the sampling temperature, as the generator saw them;
    ``pixels`` float32 [B, 3, H, W], the image of each prompt, or None. Between the answers of a response of several
    turns stand the environment's tokens, with 0 in the mask.
    """

    input_ids: Tensor
    prompt_mask: Tensor
    response_mask: Tensor
    generation_logprobs: Tensor
    pixels: Tensor | None = None

    @property
    def prompt_length(self) -> int:
        """P, padding counted."""
        return int(self.prompt_mask.shape[1])

    def responses(self) -> Tensor:
        """Response token ids, int64 [B, T]."""
        return self.input_ids[:, self.prompt_length :]

    def rows(self, index: Tensor) -> Batch:
        """The sequences at ``index`` (int64 [b])."""
        return Batch(*(None if part is None else part[index] for part in self._tensors()))

    def to(self, device: str) -> Batch:
        """The same on ``device``."""
        return Batch(*(None if part is None else part.to(device) for part in self._tensors()))

    def _tensors(self) -> list[Any]:
        return [getattr(self, item.name) for item in fields(self)]


def pad_left(sequences: list[list[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Token ids int64 [B, P] and mask bool [B, P] of sequences padded on the left to the longest."""
    width = max(len(ids) for ids in sequences)
    ids = torch.tensor([[pad_id] * (width - len(row)) + row for row in sequences], dtype=torch.int64)
    mask = torch.tensor([[False] * (width - len(row)) + [True] * len(row) for row in sequences])
    return ids, mask
