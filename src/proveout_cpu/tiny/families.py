"""The tiny shapes of the model families that the Bridge and the loops know."""

from __future__ import annotations

from typing import Any

SHARED: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "dtype": "float32",
}
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "llama": {"model_type": "llama", "head_dim": 32},
    "qwen3-moe": {
        "model_type": "qwen3_moe",
        "head_dim": 32,
        "moe_intermediate_size": 64,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
        "tie_word_embeddings": False,
    },
}


def settings_of(family: str) -> dict[str, Any]:
    """The configuration of a family's tiny model, without its vocabulary."""
    return SHARED | FAMILIES[family]
