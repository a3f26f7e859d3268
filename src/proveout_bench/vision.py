"""Images in prompts: the processor of the built-in vision-language model, made here rather than loaded.

A prompt's text names the place of its image by ``IMAGE``; it becomes as many tokens as the vision tower has patches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

IMAGE = "<|image|>"
PATCH = 8


class Processor:
    """Scales images to ``size`` x ``size`` pixels and normalises their channels, as CLIP's processor does."""

    def __init__(self, size: int) -> None:
        from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

        self.tokens = patches(size)
        self._inner: Any = CLIPImageProcessorPil(
            size={"height": size, "width": size}, do_center_crop=False, default_to_square=True
        )

    def expand(self, text: str) -> str:
        """The text with one ``IMAGE`` a patch."""
        return text.replace(IMAGE, IMAGE * self.tokens)

    def pixels(self, images: Sequence[Any]) -> Tensor:
        """Float32 [B, 3, size, size] of PIL images."""
        found = self._inner(images=list(images), return_tensors="pt")["pixel_values"]
        return torch.as_tensor(found).float()


def patches(size: int) -> int:
    """How many tokens an image of ``size`` x ``size`` pixels becomes."""
    return (size // PATCH) ** 2


def build(shape: Any, common: dict[str, Any], image_id: int) -> Any:
    """A LLaVA-style model: a CLIP vision tower, a projector and a Qwen2 of the settings ``common``.

    The output layer has no row for the image's token ``image_id``, the last one: it is never sampled.
    """
    from transformers import CLIPVisionConfig, LlavaConfig, LlavaForConditionalGeneration, Qwen2Config

    width = shape.hidden_size // 2
    vision = CLIPVisionConfig(
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=shape.image_size,
        patch_size=PATCH,
        projection_dim=width,
    )
    text: Any = Qwen2Config(**(common | {"tie_word_embeddings": False}))
    settings: Any = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=image_id,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        image_seq_length=patches(shape.image_size),
        tie_word_embeddings=False,
    )
    model: Any = LlavaForConditionalGeneration(settings)
    output = torch.nn.Linear(shape.hidden_size, image_id, bias=False)
    torch.nn.init.normal_(output.weight, std=shape.init_std)
    model.lm_head = output
    for name, weight in model.named_parameters():
        if "post_layernorm" in name:
            weight.requires_grad_(False)
    return model
