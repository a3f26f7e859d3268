"""A rollout batch as Megatron takes it: real tokens first in each row, padding after them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from proveout_bench.batch import Batch


@dataclass(frozen=True)
class Aligned:
    """``ids`` int64 [B, S]; ``places`` int64 [B, T]: from which position the logits of each response token come;
    ``tokens`` int64 [B, T]: the response tokens.

    With the padding behind them, causal attention is exact for real tokens without a mask, and rotary positions
    count from the first real token as they do in Hugging Face's models.
    """

    ids: Tensor
    places: Tensor
    tokens: Tensor

    def rows(self, index: Tensor) -> Aligned:
        """The sequences at ``index`` (int64 [b])."""
        return Aligned(self.ids[index], self.places[index], self.tokens[index])


def align(batch: Batch, multiple: int = 1) -> Aligned:
    """Shift each row's prompt padding to its end, and pad the length to a ``multiple``."""
    ids, prompt, steps = batch.input_ids, batch.prompt_length, batch.response_mask.shape[1]
    lengths = batch.prompt_mask.sum(dim=1)
    shift = (prompt - lengths).unsqueeze(1)
    places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
    rolled = ids.gather(1, (places + shift) % ids.shape[1])
    if more := -ids.shape[1] % multiple:
        rolled = torch.nn.functional.pad(rolled, (0, more))
    of_response = lengths.unsqueeze(1) - 1 + torch.arange(steps, device=ids.device).unsqueeze(0)
    return Aligned(rolled, of_response, batch.responses())
