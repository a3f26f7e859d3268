"""Is a directory a Hugging Face checkpoint that this program can load? Asks file names and JSON alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proveout_bench.errors import ConfigError

SINGLE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def check_model_dir(text: str) -> None:
    """Raise ConfigError that names everything missing from the checkpoint directory ``text``."""
    folder = Path(text)
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise ConfigError(
            f"model={text}: {what}; give a local checkpoint directory with config.json, weights and a "
            "tokenizer, or leave the key out for the built-in tiny model"
        )
    missing = [*_config_problems(folder), *_weight_problems(folder), *_tokenizer_problems(folder)]
    if missing:
        raise ConfigError(f"model={text}: not a complete Hugging Face checkpoint: {'; '.join(missing)}")


def _config_problems(folder: Path) -> list[str]:
    path = folder / "config.json"
    if not path.is_file():
        return ["config.json is missing"]
    config = _read_object(path)
    if config is None:
        return ["config.json is not a JSON object"]
    return [] if config.get("model_type") else ["config.json has no model_type"]


def _weight_problems(folder: Path) -> list[str]:
    for name in SINGLE_WEIGHTS:
        if (folder / name).is_file():
            return []
        index = folder / f"{name}.index.json"
        if index.is_file():
            content = _read_object(index) or {}
            shards = content.get("weight_map")
            if not isinstance(shards, dict) or not shards:
                return [f"{index.name} has no weight_map"]
            lost = sorted({str(shard) for shard in shards.values() if not (folder / str(shard)).is_file()})
            return [f"weight shard {shard} is missing" for shard in lost]
    return [f"weights are missing ({' or '.join(SINGLE_WEIGHTS)}, or an index with its shards)"]


def _tokenizer_problems(folder: Path) -> list[str]:
    if any((folder / name).is_file() for name in TOKENIZERS):
        return []
    return [f"tokenizer is missing ({', '.join(TOKENIZERS)})"]


def _read_object(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
