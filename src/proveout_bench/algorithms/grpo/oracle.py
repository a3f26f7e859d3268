"""The loss once more, by numpy in float64 and in another order, so that an error of the first shows as a difference."""

from __future__ import annotations

import numpy
from torch import Tensor

from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.config.schema import Loss


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
    return float((config.kl_beta * penalty - worst).mean())
