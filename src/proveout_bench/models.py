"""The model under training: a tiny Qwen2-style model from a configuration, or a local checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers.models.qwen2.configuration_qwen2 import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2ForCausalLM

from proveout_bench import vision
from proveout_bench.config.schema import InitModelConfig, RunConfig, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.tokenizer import CharacterTokenizer, CheckpointTokenizer, Tokenizer


def load(config: RunConfig) -> tuple[torch.nn.Module, Tokenizer]:
    """The float32 model in evaluation mode, on the CPU, and its tokenizer.

    Raises ConfigError if the checkpoint directory does not load.
    """
    if config.model:
        return _load_checkpoint(config.model)
    tokenizer = CharacterTokenizer((vision.IMAGE,) if config.tiny.image_size else ())
    return build_tiny(config.tiny, tokenizer, config.seed), tokenizer


def build_tiny(shape: TinyModel, tokenizer: Tokenizer, seed: int) -> torch.nn.Module:
    """The model of ``shape`` with weights drawn from ``seed``; the global random state stays as it was."""
    common: dict[str, Any] = {
        "vocab_size": -(-len(tokenizer) // shape.vocab_multiple) * shape.vocab_multiple,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "max_position_embeddings": shape.max_positions,
        "initializer_range": shape.init_std,
        "tie_word_embeddings": shape.tied_embeddings,
        "pad_token_id": tokenizer.pad_id,
        "eos_token_id": tokenizer.eos_ids[0],
        "bos_token_id": None,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any
        if shape.image_size:
            model = vision.build(shape, common, len(tokenizer) - 1)
        elif shape.experts:
            model = _mixture(shape, common)
        elif shape.family == "qwen2":
            model = Qwen2ForCausalLM(Qwen2Config(**common))
        else:
            model = _of_family(shape, common)
        _spread(model, shape.init_std)
    return model.eval()


def _mixture(shape: TinyModel, common: dict[str, Any]) -> Any:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    settings = Qwen3MoeConfig(
        **common,
        head_dim=shape.hidden_size // shape.heads,
        moe_intermediate_size=shape.intermediate_size // 2,
        num_experts=shape.experts,
        num_experts_per_tok=shape.experts_per_token,
        decoder_sparse_step=1,
    )
    return Qwen3MoeForCausalLM(settings)


def _of_family(shape: TinyModel, common: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = AutoConfig.for_model(shape.family, **common, head_dim=shape.hidden_size // shape.heads)
    return AutoModelForCausalLM.from_config(settings)


def _spread(model: torch.nn.Module, std: float) -> None:
    """Give biases and norm weights values of their own: where all are 0 or 1, a lost or swapped one shows nowhere."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn(weight.shape) * std)


def save_tiny(config: InitModelConfig, directory: str) -> None:
    """Write the tiny model of ``config`` with its tokenizer as a Hugging Face checkpoint directory."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = CharacterTokenizer()
    model: Any = build_tiny(config.tiny, tokenizer, config.seed)
    model.save_pretrained(folder)
    tokenizer.save(folder)


def _load_checkpoint(directory: str) -> tuple[torch.nn.Module, Tokenizer]:
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            directory, local_files_only=True, dtype=torch.float32
        )
        tokenizer = CheckpointTokenizer(directory)
    except Exception as error:
        raise ConfigError(f"model={directory}: does not load: {type(error).__name__}: {error}") from error
    return model.eval(), tokenizer
