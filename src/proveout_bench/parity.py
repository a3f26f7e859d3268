"""Does the policy compute what the original checkpoint computes, when it is loaded and after it was exported?

Agreement of generation and policy cannot tell: weights that are wrong in the policy are sent on as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from proveout_bench import console, models
from proveout_bench.config.schema import RunConfig
from proveout_bench.forward import image_arguments

ROWS, LENGTH, SEED = 4, 24, 20
SHOWN = 8
SUSPECT = 1e-4


class Comparable(Protocol):
    """What can be compared with a Hugging Face model."""

    def logits(self, ids: Tensor, pixels: Tensor | None = None) -> Tensor:
        """Float32 [B, S, V] on the CPU."""
        ...

    def weights(self) -> Iterable[tuple[str, Tensor]]:
        """All weights under their Hugging Face names."""
        ...

    def first_differing(self, original: torch.nn.Module, ids: Tensor) -> list[str]:
        """One text for each weight of the first place that computes something else than ``original``, if known."""
        ...


def at_load(config: RunConfig, policy: Comparable) -> dict[str, float]:
    """Compare with the model that the configuration names, loaded anew; lines on the console name what differs.

    ``load_max_logit_diff``: largest absolute difference of a logit; ``load_logit_scale``: largest absolute logit
    of the original; ``load_weights_differing``: number of weights that are not equal bit for bit, missing and
    further ones counted.
    """
    original, _ = models.load(config)
    found = _compare("load", original, policy)
    wrong = list(differing(original, policy.weights()))
    if not wrong and found["load_max_logit_diff"] > SUSPECT * found["load_logit_scale"]:
        wrong = policy.first_differing(original, probe(_vocabulary(original)))
    for line in wrong[:SHOWN]:
        print(console.LOAD_DIFFERS.format(what=line), flush=True)
    return {**found, "load_weights_differing": float(len(wrong))}


def at_export(folder: Path, policy: Comparable) -> dict[str, float]:
    """Compare with what was exported, loaded as anyone would: ``export_max_logit_diff``, ``export_logit_scale``."""
    from proveout_bench.backends.full import load_exported

    return _compare("export", load_exported(folder), policy)


def differing(original: torch.nn.Module, weights: Iterable[tuple[str, Tensor]]) -> Iterable[str]:
    """One text for each weight that is missing, of another shape, different or not known to ``original``."""
    ours = dict(weights)
    theirs = {name: value.detach() for name, value in original.named_parameters(remove_duplicate=False)}
    tied = {name for name, _ in original.named_parameters()}
    for name, value in theirs.items():
        if name not in ours:
            if name in tied:
                yield f"{name}: missing in the policy"
            continue
        mine = ours[name].detach().to("cpu", value.dtype)
        if mine.shape != value.shape:
            yield f"{name}: shape {tuple(mine.shape)}, original {tuple(value.shape)}"
        elif not torch.equal(mine, value):
            yield f"{name}: differs by {float((mine - value).abs().max()):.3g} at most"
    for name in ours.keys() - theirs.keys():
        yield f"{name}: not in the original"


def logits_of(model: Any, ids: Tensor, pixels: Tensor | None = None) -> Tensor:
    """Logits of a Hugging Face model, float32 [B, S, V] on the CPU."""
    device = next(model.parameters()).device
    with torch.no_grad():
        images = image_arguments(None if pixels is None else pixels.to(device))
        logits: Tensor = model(input_ids=ids.to(device), use_cache=False, **images).logits
    return logits.float().cpu()


def probe(vocabulary: int) -> Tensor:
    """The sequences that are compared, int64 [ROWS, LENGTH]: always the same tokens."""
    draw = torch.Generator().manual_seed(SEED)
    return torch.randint(0, vocabulary, (ROWS, LENGTH), generator=draw)


def _with_images(ids: Tensor, config: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The sequences begin with an image each, of always the same noise."""
    side, image = config.vision_config.image_size, config.image_token_id
    draw = torch.Generator().manual_seed(SEED)
    places = torch.full((len(ids), config.image_seq_length), image)
    text = ids.masked_fill(ids == image, 0)
    return torch.cat([places, text], dim=1), (torch.randn(len(ids), 3, side, side, generator=draw),)


def _vocabulary(model: Any) -> int:
    return int(model.config.get_text_config().vocab_size)


def _compare(when: str, original: Any, policy: Comparable) -> dict[str, float]:
    ids, images = probe(_vocabulary(original)), ()
    if hasattr(original.config, "vision_config"):
        ids, images = _with_images(ids, original.config)
    theirs, ours = logits_of(original, ids, *images), policy.logits(ids, *images)
    difference, scale = float((ours - theirs).abs().max()), float(theirs.abs().max())
    print(console.PARITY.format(when=when, difference=difference, scale=scale), flush=True)
    return {f"{when}_max_logit_diff": difference, f"{when}_logit_scale": scale}
