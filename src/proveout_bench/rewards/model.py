"""A reward model: a sequence classifier of transformers with one output, whose score is the reward.

The built-in one is a tiny Qwen2 whose weights are written down rather than trained, so that what it prefers is known:
its one attention layer weighs all tokens alike and carries the share of digits to the last token, where the output
reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import ConfigError
from proveout_bench.faults import Faults
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.tokenizer import Tokenizer

HIDDEN, SHARE = 8, 0.25
DIGITS, OTHERS, CARRIED = 0, 1, 2
LIKED, DISLIKED = "12345678", "abcdefgh"


class ModelReward:
    """Scores the text of prompt and answer with the built-in model or that of the directory ``reward.model``."""

    def __init__(self, config: RunConfig, task: Task, tokenizer: Tokenizer) -> None:
        self._task, self._tokenizer = task, tokenizer
        self._device = config.runtime.device
        self._model: Any = _load(config.reward.model) if config.reward.model else build(tokenizer)
        Faults(config.fault).reward_model(self._model)
        self._model.to(self._device)
        self._measured: dict[str, float] = {}

    def score(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> list[float]:
        """Scores as the model gives them, not bounded."""
        texts = [prompt.text + answer for prompt, answer in zip(prompts, answers, strict=True)]
        probes = [prompts[0].text + LIKED, prompts[0].text + DISLIKED]
        scores = self._scores([*texts, *probes])
        seen = zip(prompts, texts, strict=True)
        rules = torch.tensor([self._task.reward(prompt, text) for prompt, text in seen])
        given = scores[:-2]
        self._measured = {
            "reward_model/score_mean": float(given.mean()),
            "reward_model/score_min": float(given.min()),
            "reward_model/score_max": float(given.max()),
            "reward_model/preference": float(scores[-2] - scores[-1]),
            "reward_model/agreement": _correlation(given, rules),
        }
        found: list[float] = given.tolist()
        return found

    def measure(self) -> dict[str, float]:
        """``preference``: by how much digits score higher than letters after the same prompt; ``agreement``: the
        correlation of scores and the rule's rewards for the same texts, prompt and answer; 1 where either are equal."""
        return self._measured

    def _scores(self, texts: list[str]) -> Tensor:
        """Float32 [n] on the CPU."""
        rows = [self._tokenizer.encode(text) for text in texts]
        width = max(len(row) for row in rows)
        pad = self._tokenizer.pad_id
        ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=self._device)
        with torch.no_grad():
            logits: Tensor = self._model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        return logits[:, 0].float().cpu()


def build(tokenizer: Tokenizer) -> Any:
    """The classifier whose score rises with the share of digits among the tokens."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    settings: Any = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        pad_token_id=tokenizer.pad_id,
        num_labels=1,
    )
    model: Any = Qwen2ForSequenceClassification(settings)
    digits = torch.tensor([tokenizer.decode([token]).isdigit() for token in range(len(tokenizer))])
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.zero_()
        for name, bias in model.named_parameters():
            if name.endswith("bias"):
                bias.zero_()
        model.model.embed_tokens.weight[:, DIGITS] = digits.float()
        model.model.embed_tokens.weight[:, OTHERS] = 1.0 - digits.float()
        attention = model.model.layers[0].self_attn
        attention.v_proj.weight[CARRIED, DIGITS] = 1.0
        attention.o_proj.weight[CARRIED, CARRIED] = SHARE / HIDDEN**0.5
        model.score.weight[0, CARRIED] = 1.0 / (SHARE * HIDDEN**0.5)
    return model.eval()


def _load(folder: str) -> Any:
    from transformers import AutoModelForSequenceClassification

    try:
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32
        )
    except Exception as error:
        raise ConfigError(f"reward.model={folder}: does not load: {type(error).__name__}: {error}") from error
    if model.config.num_labels != 1:
        raise ConfigError(f"reward.model={folder}: has {model.config.num_labels} outputs; a score is one")
    return model.eval()


def _correlation(one: Tensor, other: Tensor) -> float:
    one, other = one.double() - one.double().mean(), other.double() - other.double().mean()
    scale = one.norm() * other.norm()
    return float((one * other).sum() / scale) if scale > 0 else 1.0
