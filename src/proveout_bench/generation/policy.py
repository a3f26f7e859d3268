"""Sampling by the policy backend itself: no second copy of the weights, and no refit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor

from proveout_bench import ranks
from proveout_bench.batch import Batch, pad_left
from proveout_bench.checkpoint.state import TorchRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Rollout
from proveout_bench.forward import token_logprobs
from proveout_bench.refit.report import RefitReport
from proveout_bench.tokenizer import Tokenizer


class Predictor(Protocol):
    """A policy that can be asked for the logits of whole sequences."""

    def next_logits(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Logits after the first ``lengths`` int64 [B] tokens of each row of ``ids`` int64 [B, S]: float32 [B, V]."""
        ...


class PolicyGenerator:
    """Every rank computes the logits; rank 0 draws the tokens."""

    def __init__(self, config: Rollout, policy: Predictor, tokenizer: Tokenizer, seed: int) -> None:
        self._config, self._policy, self._tokenizer = config, policy, tokenizer
        self._draw = torch.Generator().manual_seed(seed)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Nothing: the policy's weights are the ones that sample."""

    def refit(self) -> RefitReport:
        """Nothing was sent."""
        return RefitReport()

    def generate(self, prompts: list[list[int]], pixels: Tensor | None = None) -> Batch:
        """Sample up to ``max_new_tokens`` tokens a prompt, each from a forward pass over all that came before.

        Raises ValueError for images, which a ``Predictor`` does not take.
        """
        if pixels is not None:
            raise ValueError("this generator takes no images")
        steps, pad = self._config.max_new_tokens, self._tokenizer.pad_id
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        rows = torch.full((len(prompts), int(lengths.max()) + steps), pad)
        for row, prompt in zip(rows, prompts, strict=True):
            row[: len(prompt)] = torch.tensor(prompt)
        alive, columns = torch.ones(len(prompts), dtype=torch.bool), []
        for _ in range(steps):
            logits = self._policy.next_logits(rows[:, : int(lengths.max())], lengths)
            token = ranks.shared(self._drawn(logits) if ranks.first() else None)
            columns.append((token, token_logprobs(logits, token, self._config.temperature), alive))
            rows[torch.arange(len(rows)), lengths] = token
            lengths = lengths + 1
            alive = alive & ~torch.isin(token, torch.tensor(self._tokenizer.eos_ids))
            if not bool(alive.any()):
                break
        tokens, logprobs, counted = (torch.stack(parts, 1) for parts in zip(*columns, strict=True))
        ids, mask = pad_left(prompts, pad)
        return Batch(
            input_ids=torch.cat([ids, torch.where(counted, tokens, pad)], dim=1),
            prompt_mask=mask,
            response_mask=counted.float(),
            generation_logprobs=torch.where(counted, logprobs, 0.0),
        )

    def reseed(self, seed: int) -> None:
        """Start the sampling anew."""
        self._draw.manual_seed(seed)

    def part(self) -> Stateful:
        """The generator of random numbers."""
        return TorchRandom(self._draw)

    def _drawn(self, logits: Tensor) -> Tensor:
        scaled = logits.float() / self._config.temperature
        if self._config.ignore_eos:
            scaled[:, list(self._tokenizer.eos_ids)] = -torch.inf
        return torch.multinomial(scaled.softmax(-1), 1, generator=self._draw).squeeze(1)
