"""What this backend takes, and what it refuses with the reason. Reads the configuration alone; imports no torch."""

from __future__ import annotations

import json
from pathlib import Path

from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import ConfigError

FAMILIES = ("qwen2", "qwen3", "llama", "mistral", "qwen3_moe", "gemma")
WRONG = {
    "gemma2": "Megatron's local layers drop Gemma 2's norms after attention and MLP without an error, so its logits "
    "are wrong without Transformer Engine",
}
MODULES = {
    "q_proj": "linear_qkv",
    "k_proj": "linear_qkv",
    "v_proj": "linear_qkv",
    "o_proj": "linear_proj",
    "gate_proj": "linear_fc1",
    "up_proj": "linear_fc1",
    "down_proj": "linear_fc2",
}
"""Hugging Face's name of a linear layer -> that of the Megatron layer which holds it."""


def check(config: RunConfig) -> None:
    """Raise ConfigError for a family, layout or combination that does not run, or runs silently wrong."""
    layout = config.megatron
    if config.model:
        _check_checkpoint(config.model, layout.tp)
    elif config.tiny.vocab_multiple % layout.tp:
        raise ConfigError(
            f"megatron.tp={layout.tp} must divide tiny.vocab_multiple={config.tiny.vocab_multiple}: the Bridge does "
            f"not export a vocabulary that was padded; write tiny.vocab_multiple={layout.tp}"
        )
    if layout.cp > 1:
        raise ConfigError(
            f"megatron.cp={layout.cp}: context parallelism needs Transformer Engine's attention; "
            "Megatron's own refuses it"
        )
    if layout.distributed_optimizer and (config.checkpoint.every or config.resume != "never"):
        raise ConfigError(
            "megatron.distributed_optimizer=true with a checkpoint: without Transformer Engine its state resumes "
            "silently wrong; save without it, or train without saving"
        )
    if layout.dp % layout.ep:
        raise ConfigError(f"megatron.ep={layout.ep} must divide megatron.dp={layout.dp}")
    if layout.sequence_parallel and layout.tp == 1:
        raise ConfigError("megatron.sequence_parallel=true needs megatron.tp of 2 or more")
    if config.lora.rank:
        unknown = [name for name in targets_of(config) if name not in MODULES]
        if unknown:
            raise ConfigError(
                f"lora.targets={config.lora.targets}: {unknown[0]} is none of {', '.join(MODULES)}"
            )


def targets_of(config: RunConfig) -> list[str]:
    """``lora.targets`` as a list."""
    return [name.strip() for name in config.lora.targets.split(",") if name.strip()]


def world_of(config: RunConfig) -> int:
    """How many processes the layout needs."""
    layout = config.megatron
    return layout.tp * layout.pp * layout.dp


def _check_checkpoint(model: str, tp: int) -> None:
    try:
        settings = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
        kind, vocabulary = settings.get("model_type", ""), settings.get("vocab_size", 0)
    except (OSError, ValueError, AttributeError):
        return
    if kind in WRONG:
        raise ConfigError(f"model={model}: family {kind} is refused by backend megatron: {WRONG[kind]}")
    if kind not in FAMILIES:
        raise ConfigError(
            f"model={model}: family {kind} is not on the list of those whose logits were compared with "
            f"Hugging Face's on this backend: {', '.join(FAMILIES)}"
        )
    if isinstance(vocabulary, int) and vocabulary % tp:
        raise ConfigError(
            f"megatron.tp={tp} must divide the vocabulary of model={model}, {vocabulary}: the Bridge does not export "
            "a vocabulary that was padded"
        )
