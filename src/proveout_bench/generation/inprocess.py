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
from proveout_bench.config.schema import Rollout, RunConfig
from proveout_bench.faults import Faults
from proveout_bench.faults.sampling import Sampling
from proveout_bench.forward import image_arguments, positions, token_logprobs
from proveout_bench.refit.report import RefitReport, measures, together
from proveout_bench.tokenizer import Tokenizer


class InProcessGenerator:
    """Samples from its own copy of ``model``, so that a refit that does not happen shows in the metrics."""

    def __init__(
        self,
        config: Rollout,
        model: torch.nn.Module,
        tokenizer: Tokenizer,
        seed: int,
        *,
        hooks: Sampling | None = None,
        shared: bool = False,
    ) -> None:
        self._config, self._tokenizer, self._hooks = config, tokenizer, hooks or Sampling()
        self._model: Any = model if shared else copy.deepcopy(model).eval().requires_grad_(False)
        self._device = next(model.parameters()).device
        self._weights = dict(self._model.named_parameters())
        self._draw = torch.Generator(self._device).manual_seed(seed)
        self._prefix: tuple[tuple[int, ...], Any] | None = None
        self._version, self._report = 0, RefitReport()
        self._unread: RefitReport | None = None

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy ``weights`` in place; a name that the model does not have is left out and counted."""
        self._version += 1
        changed, largest, extra, seen = 0, 0.0, 0, set[str]()
        with torch.no_grad():
            for name, value in self._hooks.delivered(weights, self._version):
                own = self._weights.get(name)
                if own is None:
                    extra += 1
                    continue
                seen.add(name)
                changed += int((own != value).sum())
                largest = max(largest, float((own - value).abs().max()))
                own.copy_(value)
        self.weights_changed()
        metrics = measures(
            version=self._version,
            expected=self._version,
            changed=changed,
            elements=sum(weight.numel() for weight in self._weights.values()),
            largest=largest,
            missing=len(self._weights) - len(seen),
            extra=extra,
            sent=0,
        )
        self._report = together(self._unread, RefitReport(metrics))
        self._unread = self._report

    def refit(self) -> RefitReport:
        """What the last ``load_weights`` did, with what changed since this was asked last."""
        self._unread = None
        return self._report

    def parameters(self) -> dict[str, Tensor]:
        """The weights themselves, for whoever updates them in place and then says ``weights_changed``."""
        return {name: weight.detach() for name, weight in self._weights.items()}

    def weights_changed(self) -> None:
        """Forget what was computed with the weights before."""
        if not self._hooks.keeps_prefix():
            self._prefix = None

    def generate(self, prompts: list[list[int]], pixels: Tensor | None = None) -> Batch:
        """Sample up to ``max_new_tokens`` tokens a prompt, at the configured temperature."""
        seen = None if pixels is None else self._hooks.pixels(pixels.to(self._device))
        ids, mask = (tensor.to(self._device) for tensor in pad_left(prompts, self._tokenizer.pad_id))
        with torch.inference_mode():
            tokens, logprobs, alive = self._sample(ids, mask, seen)
        tokens = torch.where(alive, tokens, self._tokenizer.pad_id)
        return Batch(
            input_ids=torch.cat([ids, tokens], dim=1),
            prompt_mask=mask,
            response_mask=alive.float(),
            generation_logprobs=torch.where(alive, logprobs, 0.0),
            pixels=None if pixels is None else pixels.to(self._device),
        )

    def reseed(self, seed: int) -> None:
        """Start the sampling anew."""
        self._draw.manual_seed(seed)

    def part(self) -> Stateful:
        """The generator of random numbers."""
        return TorchRandom(self._draw)

    def _sample(self, ids: Tensor, mask: Tensor, pixels: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens int64, log-probabilities float32 and whether each counts, bool; all [B, T], T as reached."""
        padded = not bool(mask.all())
        alive = torch.ones(len(ids), dtype=torch.bool, device=self._device)
        cache, known = (None, 0) if padded or not self._config.prefix_cache else self._cached(ids)
        fed, columns = ids[:, known:] if known else ids, []
        for _ in range(self._config.max_new_tokens):
            extra = {"attention_mask": mask.long(), "position_ids": positions(mask)[:, -fed.shape[1] :]}
            outputs = self._model(
                input_ids=fed,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                **(extra if padded else {}),
                **image_arguments(pixels if fed is ids else None),
            )
            cache, logits = outputs.past_key_values, outputs.logits[:, -1]
            logits = self._hooks.logits(logits)
            token = self._draw_tokens(logits)
            columns.append((token, token_logprobs(logits, token, self._config.temperature), alive))
            alive = alive & ~self._ends(token)
            if not bool(alive.any()):
                break
            fed = token.unsqueeze(1)
            mask = torch.nn.functional.pad(mask, (0, 1), value=True)
        tokens, logprobs, counted = zip(*columns, strict=True)
        return torch.stack(tokens, 1), torch.stack(logprobs, 1), torch.stack(counted, 1)

    def _cached(self, ids: Tensor) -> tuple[Any, int]:
        """A cache of keys and values for each row's common beginning, and how many tokens it holds."""
        same = (ids == ids[:1]).all(dim=0).long().cumprod(dim=0)
        count = min(int(same.sum()), ids.shape[1] - 1)
        if not count:
            return None, 0
        tokens = tuple(ids[0, :count].tolist())
        if self._prefix is None or self._prefix[0] != tokens:
            outputs = self._model(input_ids=ids[:1, :count], use_cache=True, logits_to_keep=1)
            self._prefix = tokens, outputs.past_key_values
        cache = copy.deepcopy(self._prefix[1])
        cache.batch_repeat_interleave(len(ids))
        return cache, count

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


class PolicyGenerator(InProcessGenerator):
    """Samples with ``model`` itself: there are no weights to load, and nothing of it is changed."""

    def __init__(self, config: Rollout, model: torch.nn.Module, tokenizer: Tokenizer, seed: int) -> None:
        super().__init__(config, model, tokenizer, seed, shared=True)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Nothing but to forget what was computed with the weights before."""
        self.weights_changed()


def build(config: RunConfig, model: torch.nn.Module, tokenizer: Tokenizer) -> InProcessGenerator:
    """The engine ``inprocess``."""
    return InProcessGenerator(
        config.rollout, model, tokenizer, config.seed, hooks=Faults(config.fault).sampling()
    )
