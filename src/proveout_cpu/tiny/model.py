"""A tiny model of a family that the real loops know, with a tokenizer that has a chat template."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from proveout_cpu.tiny.families import settings_of
from proveout_cpu.tiny.sums import tokenizer_corpus

END, PAD, START = "<|im_end|>", "<|pad|>", "<|im_start|>"
SPECIAL = ("<|endoftext|>", START, END, PAD)
VOCABULARY = 320
TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class WrongInputError(Exception):
    """What was given cannot be made into a model."""


def write(family: str, target: Path, seed: int = 0, warm: int = 0, changes: list[str] | None = None) -> int:
    """Write configuration, weights and tokenizer; the number of parameters."""
    import torch
    import transformers

    target.mkdir(parents=True, exist_ok=True)
    tokenizer = write_tokenizer(target)
    vocabulary = {
        "vocab_size": len(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
    settings = change(settings_of(family) | vocabulary, changes or [])
    if settings["vocab_size"] < len(tokenizer):
        raise WrongInputError(
            f"vocab_size {settings['vocab_size']} is below the tokenizer's {len(tokenizer)}"
        )
    try:
        config = transformers.AutoConfig.for_model(**settings)
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config)
    except Exception as error:
        raise WrongInputError(f"no {family} can be built: {' '.join(str(error).split())[:300]}") from None
    if warm:
        from proveout_cpu.tiny.warm_start import warm_start

        warm_start(model, tokenizer, warm, seed)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(target)
    return sum(parameter.numel() for parameter in model.parameters())


def change(settings: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The configuration with ``key=value`` words put in: keys that it has, values as JSON."""
    changed = dict(settings)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in settings:
            close = get_close_matches(key, settings, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(settings)}"
            raise WrongInputError(f"{word}: no key {key!r} in the configuration{hint}")
        try:
            changed[key] = json.loads(value)
        except ValueError:
            raise WrongInputError(f"{word}: {value!r} is no JSON value") from None
    return changed


def write_tokenizer(target: Path) -> Any:
    """Write a byte-level BPE of ``VOCABULARY`` tokens with a chat template, and return it as transformers loads it.

    Digits stand alone and no merge crosses a word, so that Qwen2's own splitting, which transformers puts in
    place of this one for its families, gives the same tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    fast.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    fast.train_from_iterator(tokenizer_corpus(), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(target))
    return tokenizer
