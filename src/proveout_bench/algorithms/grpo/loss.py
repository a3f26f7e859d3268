"""The clipped-ratio loss with a KL term to the reference policy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, minimum

from proveout_bench.config.schema import Loss
from proveout_bench.metrics.formulas import approx_entropy, k3, masked_extremes, masked_mean


@dataclass(frozen=True)
class LossInputs:
    """Of one minibatch, all float32 [b, T]; log-probabilities in nats."""

    advantages: Tensor
    previous: Tensor
    reference: Tensor
    generation: Tensor
    mask: Tensor

    def rows(self, index: Tensor) -> LossInputs:
        """The sequences at ``index`` (int64 [b])."""
        return LossInputs(
            *(
                part[index]
                for part in (self.advantages, self.previous, self.reference, self.generation, self.mask)
            )
        )


def grpo_loss(current: Tensor, inputs: LossInputs, config: Loss) -> tuple[Tensor, dict[str, float]]:
    """Token-mean of -min(r A, clip(r) A) + beta k3(reference, current), r = exp(current - previous); metrics.

    ``current`` float32 [b, T] carries the gradient. Clipping as in PPO (Schulman et al., 2017, eq. 7); with
    ``importance_correction`` the first term is weighed by ``importance_weights``.
    """
    ratio = (current - inputs.previous).exp()
    clamped = ratio.clamp(1.0 - config.clip_low, 1.0 + config.clip_high)
    gain = minimum(ratio * inputs.advantages, clamped * inputs.advantages)
    if config.importance_correction:
        gain = gain * importance_weights(inputs, config.importance_cap)
    penalty = masked_mean(k3(inputs.reference, current), inputs.mask)
    loss = -masked_mean(gain, inputs.mask) + config.kl_beta * penalty
    measured = _measure(current.detach(), ratio.detach(), clamped.detach(), penalty.detach(), inputs)
    if config.importance_correction:
        weights = importance_weights(inputs, config.importance_cap)
        measured["importance_weight"] = float(masked_mean(weights, inputs.mask))
        measured["importance_weight_max"] = masked_extremes(weights, inputs.mask)[1]
    return loss, measured


def importance_weights(inputs: LossInputs, cap: float) -> Tensor:
    """min(exp(previous - generation), cap), float32 [b, T]: from the weights that sampled to those of the update.

    The truncated importance sampling of Ionides (2008), a weight for each token.
    """
    return (inputs.previous - inputs.generation).exp().clamp_max(cap)


def _measure(
    current: Tensor, ratio: Tensor, clamped: Tensor, penalty: Tensor, inputs: LossInputs
) -> dict[str, float]:
    lowest, highest = masked_extremes(ratio, inputs.mask)
    clamped_lowest, clamped_highest = masked_extremes(clamped, inputs.mask)
    return {
        "probs_ratio": float(masked_mean(ratio, inputs.mask)),
        "probs_ratio_min": lowest,
        "probs_ratio_max": highest,
        "probs_ratio_clamped": float(masked_mean(clamped, inputs.mask)),
        "probs_ratio_clamped_min": clamped_lowest,
        "probs_ratio_clamped_max": clamped_highest,
        "kl_penalty": float(penalty),
        "approx_entropy": approx_entropy(current, inputs.generation, inputs.mask),
    }
