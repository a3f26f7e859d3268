"""Sampling with a key-value cache in the training process, on a second copy of the weights."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from proveout_bench.batch import Batch, pad_left
from proveout_bench.checkpoint.state import TorchRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import Rollout
from proveout_bench.forward import positions, token_logprobs
from proveout_bench.tokenizer import Tokenizer


class InProcessGenerator:
    """Samples from its own copy of ``model``, so that a refit that does not happen shows in the metrics."""

    def __init__(self, config: Rollout, model: torch.nn.Module, tokenizer: Tokenizer, seed: int) -> None:
        self._config, self._tokenizer = config, tokenizer
        self._model: Any = copy.deepcopy(model).eval().requires_grad_(False)
        self._device = next(model.parameters()).device
        self._weights = dict(self._model.named_parameters())
        self._draw = torch.Generator(self._device).manual_seed(seed)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy ``weights`` in place; KeyError for a name that the model does not have."""
        with torch.no_grad():
            for name, value in weights:
                self._weights[name].copy_(value)

    def generate(self, prompts: list[list[int]]) -> Batch:
        """Sample up to ``max_new_tokens`` tokens a prompt, at the configured temperature."""
        ids, mask = (tensor.to(self._device) for tensor in pad_left(prompts, self._tokenizer.pad_id))
        with torch.inference_mode():
            tokens, logprobs, alive = self._sample(ids, mask)
        tokens = torch.where(alive, tokens, self._tokenizer.pad_id)
        return Batch(
            input_ids=torch.cat([ids, tokens], dim=1),
            prompt_mask=mask,
            response_mask=alive.float(),
            generation_logprobs=torch.where(alive, logprobs, 0.0),
        )

    def reseed(self, seed: int) -> None:
        """Start the sampling anew."""
        self._draw.manual_seed(seed)

    def part(self) -> Stateful:
        """The generator of random numbers."""
        return TorchRandom(self._draw)

    def _sample(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens int64, log-probabilities float32 and whether each counts, bool; all [B, T], T as reached."""
        padded = not bool(mask.all())
        alive = torch.ones(len(ids), dtype=torch.bool, device=self._device)
        cache: Any = None
        fed, columns = ids, []
        for _ in range(self._config.max_new_tokens):
            extra = {"attention_mask": mask.long(), "position_ids": positions(mask)[:, -fed.shape[1] :]}
            outputs = self._model(
                input_ids=fed,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                **(extra if padded else {}),
            )
            cache, logits = outputs.past_key_values, outputs.logits[:, -1]
            token = self._draw_tokens(logits)
            columns.append((token, token_logprobs(logits, token, self._config.temperature), alive))
            alive = alive & ~self._ends(token)
            if not bool(alive.any()):
                break
            fed = token.unsqueeze(1)
            mask = torch.nn.functional.pad(mask, (0, 1), value=True)
        tokens, logprobs, counted = zip(*columns, strict=True)
        return torch.stack(tokens, 1), torch.stack(logprobs, 1), torch.stack(counted, 1)

    def _draw_tokens(self, logits: Tensor) -> Tensor:
        scaled = logits.float() / self._config.temperature
        if self._config.ignore_eos:
            scaled[:, list(self._tokenizer.eos_ids)] = -torch.inf
        return torch.multinomial(scaled.softmax(-1), 1, generator=self._draw).squeeze(1)

    def _ends(self, token: Tensor) -> Tensor:
        ended = torch.zeros_like(token, dtype=torch.bool)
        for end in self._tokenizer.eos_ids:
            ended |= token == end
        return ended
