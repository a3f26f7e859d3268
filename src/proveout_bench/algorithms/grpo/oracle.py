"""What a step computes once more, by numpy in float64 and another way, so that an error shows as a difference."""

from __future__ import annotations

from dataclasses import replace

import numpy
from torch import Tensor

from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.config.schema import Loss

ROWS = 2
EPSILON = 1e-6


def loss(current: Tensor, inputs: LossInputs, config: Loss) -> float:
    """Of one minibatch, as ``grpo_loss`` defines it: the mean over valid tokens alone; 0 where there is none."""
    valid = inputs.mask.detach().cpu().numpy() > 0
    if not valid.any():
        return 0.0
    now, before, reference, advantage = (
        part.detach().cpu().double().numpy()[valid]
        for part in (current, inputs.previous, inputs.reference, inputs.advantages)
    )
    ratio = numpy.exp(now - before)
    low, high = 1.0 - config.clip_low, 1.0 + config.clip_high
    worst = numpy.where(
        advantage >= 0, numpy.minimum(ratio, high) * advantage, numpy.maximum(ratio, low) * advantage
    )
    apart = reference - now
    penalty = numpy.expm1(apart) - apart
    if config.importance_correction:
        sampled = inputs.generation.detach().cpu().double().numpy()[valid]
        worst = worst * numpy.minimum(numpy.exp(before - sampled), config.importance_cap)
    return float((config.kl_beta * penalty - worst).mean())


def advantage_error(advantages: Tensor, rewards: Tensor, group_size: int, normalize: bool) -> float:
    """Largest difference of ``advantages`` float32 [B, T] from those that ``rewards`` float32 [B] call for."""
    found, scores = advantages.detach().cpu().double().numpy(), rewards.detach().cpu().double().tolist()
    worst = 0.0
    for row, score in enumerate(scores):
        first = row - row % group_size
        group = scores[first : first + group_size]
        wanted = score - sum(group) / group_size
        if min(group) == max(group):
            wanted = 0.0
        elif normalize:
            mean = sum(group) / group_size
            wanted /= (sum((one - mean) ** 2 for one in group) / (group_size - 1)) ** 0.5 + EPSILON
        worst = max(worst, float(numpy.abs(found[row] - wanted).max()))
    return worst


def logprob_error(policy: PolicyBackend, batch: Batch, logprobs: Tensor, temperature: float) -> float:
    """Largest difference of ``logprobs`` float32 [B, T] from the policy's logits of each sequence alone, unpadded.

    Looks at the first row and the one with most padding; in nats.
    """
    worst = 0.0
    for row in {0, int(batch.prompt_mask.sum(dim=1).argmin())}:
        valid = batch.response_mask[row].cpu().numpy() > 0
        length = int(valid.nonzero()[0].max(initial=-1)) + 1
        prompt = batch.input_ids[row, : batch.prompt_length][batch.prompt_mask[row]]
        ids = numpy.concatenate([prompt.cpu().numpy(), batch.responses()[row, :length].cpu().numpy()])
        pixels = () if batch.pixels is None else (batch.pixels[row : row + 1],)
        logits = (
            policy.logits(batch.input_ids.new_tensor(ids)[None], *pixels).double().numpy()[0] / temperature
        )
        scores = logits[len(prompt) - 1 : -1]
        top = scores.max(axis=-1, keepdims=True)
        whole = numpy.log(numpy.exp(scores - top).sum(axis=-1)) + top[:, 0]
        wanted = scores[numpy.arange(length), ids[len(prompt) :]] - whole
        apart = numpy.abs(logprobs[row, :length].cpu().double().numpy() - wanted)
        worst = max(worst, float(apart[valid[:length]].max(initial=0.0)))
    return worst


def image_effect(policy: PolicyBackend, batch: Batch, logprobs: Tensor) -> dict[str, float]:
    """``image_effect``: largest difference of ``logprobs`` from those with blank images; empty without any."""
    if batch.pixels is None:
        return {}
    blank = policy.logprobs(replace(batch, pixels=batch.pixels * 0))
    return {"image_effect": float(((logprobs - blank).abs() * batch.response_mask).max())}


def mask_error(batch: Batch, eos_ids: tuple[int, ...]) -> float:
    """How many places of the response mask are not those up to and with the first end token."""
    ended = numpy.isin(batch.responses().cpu().numpy(), eos_ids)
    first = numpy.cumsum(ended, axis=1, dtype=numpy.int64) - ended == 0
    counted = batch.response_mask.cpu().numpy() > 0
    return float(numpy.count_nonzero(first != counted))
