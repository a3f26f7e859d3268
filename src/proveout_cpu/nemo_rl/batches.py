"""NeMo-RL's right-padded batches to requests, and what was sampled back to a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from proveout_cpu.sampler import Request, Sampled, seed_of


def requests_of(
    ids: torch.Tensor,
    lengths: torch.Tensor,
    config: Mapping[str, Any],
    *,
    longest: int,
    stops: frozenset[int],
    greedy: bool,
    salt: tuple[object, ...],
    repeats: Counter[tuple[int, ...]],
) -> list[Request]:
    """One request a row of ``ids`` [batch, tokens], of which ``lengths`` [batch] count.

    The seed of a row depends on the weights and worker (``salt``), on its prompt, and on how often that prompt
    was asked before: so a resumed run samples as one that never stopped. ``repeats`` is counted up.
    """
    found = []
    temperature = 0.0 if greedy else float(config["temperature"])
    for row, length in zip(ids.tolist(), lengths.tolist(), strict=True):
        prompt = tuple(row[:length])
        repeats[prompt] += 1
        found.append(
            Request(
                prompt=prompt,
                seed=seed_of(salt, prompt, repeats[prompt]),
                new_tokens=max(1, min(int(config["max_new_tokens"]), longest - length)),
                temperature=temperature,
                top_p=float(config["top_p"] or 1.0),
                top_k=max(0, int(config["top_k"] or 0)),
                stops=stops,
            )
        )
    return found


def generation_batch(
    ids: torch.Tensor, lengths: torch.Tensor, made: Sequence[Sampled], pad: int, ends: Collection[int]
) -> dict[str, torch.Tensor]:
    """GenerationOutputSpec of NeMo-RL (models/generation/interfaces.py): output_ids and logprobs [batch, tokens +
    longest response], lengths, and which responses were cut."""
    width = ids.shape[1] + max((len(row.tokens) for row in made), default=0)
    output = torch.full((len(made), width), pad, dtype=ids.dtype)
    logprobs = torch.zeros(len(made), width)
    for index, (row, length) in enumerate(zip(made, lengths.tolist(), strict=True)):
        end = length + len(row.tokens)
        output[index, :length] = ids[index, :length]
        output[index, length:end] = torch.tensor(row.tokens, dtype=ids.dtype)
        logprobs[index, length:end] = torch.tensor(row.logprobs)
    counts = torch.tensor([len(row.tokens) for row in made], dtype=torch.long)
    return {
        "output_ids": output,
        "logprobs": logprobs,
        "generation_lengths": counts,
        "unpadded_sequence_lengths": counts + lengths.to(torch.long),
        "truncated": torch.tensor([row.tokens[-1] not in ends for row in made], dtype=torch.bool),
    }
