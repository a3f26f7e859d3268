"""Calls of a Hugging Face causal language model with left-padded prompts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from proveout_bench.batch import Batch


def positions(mask: Tensor) -> Tensor:
    """Position of each token among the real tokens of its row, int64 [B, S]; 0 on padding."""
    return (mask.long().cumsum(dim=1) - 1).clamp_min(0)


def response_logprobs(model: torch.nn.Module, batch: Batch, temperature: float) -> Tensor:
    """Log-probability in nats of each response token, float32 [B, T], of logits / temperature."""
    steps = batch.response_mask.shape[1]
    outputs: Any = model(
        input_ids=batch.input_ids,
        use_cache=False,
        logits_to_keep=steps + 1,
        **padding_arguments(batch.prompt_mask, steps),
        **image_arguments(batch.pixels),
    )
    return token_logprobs(outputs.logits[:, :-1], batch.responses(), temperature)


def token_logprobs(logits: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    """Log-probability of ``tokens`` int64 [...] under ``logits`` [..., V] / temperature, float32 [...]."""
    scaled = logits.float() / temperature
    chosen = scaled.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - scaled.logsumexp(dim=-1)


def image_arguments(pixels: Tensor | None) -> dict[str, Tensor]:
    """What a vision-language model needs besides; empty without images."""
    return {} if pixels is None else {"pixel_values": pixels}


def padding_arguments(prompt_mask: Tensor, steps: int) -> dict[str, Tensor]:
    """Mask and positions for a whole sequence; empty if no prompt is padded: causal attention is exact then.

    Padding after the end of a response needs no mask: nothing that counts attends to it.
    """
    if bool(prompt_mask.all()):
        return {}
    mask = torch.nn.functional.pad(prompt_mask, (0, steps), value=True)
    return {"attention_mask": mask.long(), "position_ids": positions(mask)}
