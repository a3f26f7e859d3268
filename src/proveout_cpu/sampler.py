"""Sampling from a Hugging Face causal language model so that a request's tokens depend on the request alone.

An engine answers requests in the batches in which they happen to arrive, and both the shared random generator and
the shapes of its matrix products depend on them. Here every request has a generator of its own and every batch
one of a few fixed shapes, so that two runs sample the same tokens however requests arrive, given that torch computes in
one thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

ROWS = 8
LENGTH_STEP = 32


@dataclass(frozen=True)
class Request:
    """``prompt`` token ids; ``seed`` of the request's own generator; ``temperature`` 0 takes the likeliest token."""

    prompt: tuple[int, ...]
    seed: int
    new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stops: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Sampled:
    """``tokens`` with the natural log-probability of each under the distribution at the sampling temperature."""

    tokens: list[int]
    logprobs: list[float]


def seed_of(*parts: object) -> int:
    """A seed that depends on all of ``parts`` and nothing else (not on the process's hash salt)."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "little")


def sample(model: Any, requests: Sequence[Request], pad: int) -> list[Sampled]:
    """Sample for each request, in order. ``model`` takes input_ids, attention_mask, position_ids, past_key_values."""
    found: dict[int, Sampled] = {}
    shapes: dict[tuple[int, int], list[int]] = {}
    for index, request in enumerate(requests):
        length = -(-len(request.prompt) // LENGTH_STEP) * LENGTH_STEP
        shapes.setdefault((length, request.new_tokens), []).append(index)
    for (length, new_tokens), members in shapes.items():
        for start in range(0, len(members), ROWS):
            rows = members[start : start + ROWS]
            made = _batch(model, [requests[index] for index in rows], length, new_tokens, pad)
            found |= dict(zip(rows, made, strict=True))
    return [found[index] for index in range(len(requests))]


@torch.no_grad()  # type: ignore[untyped-decorator]
def _batch(model: Any, requests: list[Request], length: int, new_tokens: int, pad: int) -> list[Sampled]:
    """One batch of ROWS rows, the ones too many repeating the first; prompts are padded on the left to ``length``."""
    rows = [*requests, *([requests[0]] * (ROWS - len(requests)))]
    ids = torch.tensor([[pad] * (length - len(row.prompt)) + list(row.prompt) for row in rows])
    mask = torch.tensor([[0] * (length - len(row.prompt)) + [1] * len(row.prompt) for row in rows])
    place = (mask.cumsum(-1) - 1).clamp(min=0)
    generators = [torch.Generator().manual_seed(row.seed) for row in requests]
    made = [Sampled([], []) for _ in requests]
    past: Any = None
    for _ in range(new_tokens):
        out = model(
            input_ids=ids, attention_mask=mask, position_ids=place, past_key_values=past, use_cache=True
        )
        past = out.past_key_values
        chosen = [pad] * ROWS
        for index, (request, generator) in enumerate(zip(requests, generators, strict=True)):
            if made[index].tokens and made[index].tokens[-1] in request.stops:
                continue
            token, logprob = choose(out.logits[index, -1], request, generator)
            made[index].tokens.append(token)
            made[index].logprobs.append(logprob)
            chosen[index] = token
        if all(row.tokens[-1] in request.stops for row, request in zip(made, requests, strict=True)):
            break
        ids = torch.tensor(chosen)[:, None]
        mask = torch.cat([mask, torch.ones(ROWS, 1, dtype=mask.dtype)], dim=1)
        place = place[:, -1:] + 1
    return made


def choose(logits: torch.Tensor, request: Request, generator: torch.Generator) -> tuple[int, float]:
    """One token of ``logits`` [vocabulary], and its log-probability; top-k and top-p as in nucleus sampling
    (Holtzman et al., 2020). Of logits that are no distribution it is token 0 with a log-probability of NaN: engines
    sample garbage then, and go on."""
    logprobs = torch.log_softmax(logits.float() / (request.temperature or 1.0), dim=-1)
    if logprobs.isnan().any():
        return 0, float("nan")
    if request.temperature == 0:
        token = int(logprobs.argmax())
        return token, float(logprobs[token])
    kept = logprobs
    if 0 < request.top_k < len(kept):
        kept = kept.masked_fill(kept < kept.topk(request.top_k).values[-1], -torch.inf)
    if request.top_p < 1.0:
        order = kept.argsort(descending=True)
        before = kept[order].softmax(-1).cumsum(-1) - kept[order].softmax(-1)
        kept = kept.masked_fill(
            torch.zeros_like(kept, dtype=torch.bool).scatter(0, order, before >= request.top_p), -torch.inf
        )
    token = int(torch.multinomial(kept.softmax(-1).double(), 1, generator=generator))
    return token, float(logprobs[token])
