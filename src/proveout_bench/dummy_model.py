"""Writes a model with random weights for a Hugging Face configuration, and a tokenizer that fits it.

``python -m proveout_bench.dummy_model CONFIG.json DIR [--seed N] [--set KEY=VALUE]...``; status 2 for wrong input.
No code that a configuration points at is run, and nothing is fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "chat_template.jinja",
)
SPECIAL = ("<|pad|>", "<|eos|>")
BYTES = 256
MOST_PARAMETERS = 4_000_000_000


class WrongInputError(Exception):
    """What was given cannot be made into a model."""


def main(arguments: list[str]) -> int:
    """Write the model; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proveout_bench.dummy_model")
    parser.add_argument("config", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        settings = change(read(asked.config), asked.changes)
        parameters = write(settings, asked.config.parent, asked.directory, asked.seed)
    except WrongInputError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(f"Wrote {parameters:,} random parameters to {asked.directory}")
    return 0


def read(file: Path) -> dict[str, Any]:
    """The configuration as a dictionary."""
    try:
        settings = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise WrongInputError(f"{file}: cannot be read: {error}") from None
    if not isinstance(settings, dict) or "model_type" not in settings:
        raise WrongInputError(f"{file}: not a model configuration: no model_type")
    return settings


def change(settings: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The configuration with ``key=value`` words put in: keys that it has, values as JSON, else as text.

    Fewer layers take the first of ``layer_types`` where the configuration lists one for each layer.
    """
    settings = dict(settings)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in settings:
            close = get_close_matches(key, settings, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise WrongInputError(f"--set {word}: no key {key!r} in the configuration{hint}")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    layers, kinds = settings.get("num_hidden_layers"), settings.get("layer_types")
    if isinstance(layers, int) and isinstance(kinds, list) and layers < len(kinds):
        settings["layer_types"] = kinds[:layers]
    return settings


def write(settings: dict[str, Any], source: Path, target: Path, seed: int) -> int:
    """Write weights, configuration and tokenizer; the number of parameters."""
    import torch
    import transformers

    has_tokenizer = any(
        (source / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")
    )
    if not has_tokenizer:
        settings = settings | {"pad_token_id": BYTES, "eos_token_id": BYTES + 1, "bos_token_id": None}
    try:
        config = transformers.AutoConfig.for_model(**settings)
    except Exception as error:
        raise WrongInputError(f"transformers does not take this configuration: {_line(error)}") from None
    kind = _model_class(transformers, config)
    vocabulary = getattr(config.get_text_config(), "vocab_size", 0)
    if not has_tokenizer and vocabulary < BYTES + len(SPECIAL):
        raise WrongInputError(
            f"vocab_size {vocabulary} is too small for a tokenizer of bytes ({BYTES} and 2)"
        )
    with torch.device("meta"):
        size: int = sum(p.numel() for p in _build(kind, config).parameters())
    if size > MOST_PARAMETERS:
        raise WrongInputError(f"{size:,} parameters; make it smaller, as with --set num_hidden_layers=2")
    torch.manual_seed(seed)
    _build(kind, config).save_pretrained(target)
    if has_tokenizer:
        for name in TOKENIZER_FILES:
            if (source / name).is_file():
                shutil.copyfile(source / name, target / name)
    else:
        write_tokenizer(target)
    return size


def _model_class(transformers: Any, config: Any) -> Any:
    """The class that the configuration names, else the causal language model of its type."""
    for name in getattr(config, "architectures", None) or ():
        kind = getattr(transformers, name, None)
        if kind is not None:
            return kind
    return transformers.AutoModelForCausalLM


def _build(kind: Any, config: Any) -> Any:
    build = getattr(kind, "_from_config", None) or kind.from_config
    try:
        return build(config)
    except Exception as error:
        raise WrongInputError(f"no model can be built from this configuration: {_line(error)}") from None


def write_tokenizer(target: Path) -> None:
    """A tokenizer with one token for each byte, then padding and end."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    fast = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(alphabet)}, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    fast.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    fast.save(str(target / "tokenizer.json"))
    template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[0],
        "eos_token": SPECIAL[1],
        "chat_template": template,
    }
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
