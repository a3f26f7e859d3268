"""Metrics of a rollout batch that need no update: lengths, rewards, advantages, generation against policy."""

from __future__ import annotations

from torch import Tensor

from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.batch import Batch
from proveout_bench.metrics import formulas


def rollout_metrics(batch: Batch, rewards: Tensor, inputs: LossInputs) -> dict[str, float]:
    """Scalars under NeMo-RL's names; ``rewards`` float32 [B]."""
    mask, sides = inputs.mask, (inputs.generation.double(), inputs.previous.double(), inputs.mask)
    by_sequence = formulas.sequence_mult_prob_errors(*sides)
    low, high = formulas.masked_extremes(inputs.advantages, mask)
    return {
        "reward": float(rewards.mean()),
        "reward_std": float(rewards.std()),
        "advantages/mean": float(formulas.masked_mean(inputs.advantages, mask)),
        "advantages/min": low,
        "advantages/max": high,
        "zero_advantage_share": float(((inputs.advantages * mask) == 0).all(dim=1).float().mean()),
        "token_mult_prob_error": formulas.token_mult_prob_error(*sides),
        "gen_kl_error": formulas.gen_kl_error(*sides),
        "policy_kl_error": formulas.policy_kl_error(*sides),
        "js_divergence_error": formulas.js_divergence_error(*sides),
        "sampling_importance_ratio": formulas.sampling_importance_ratio(*sides),
        "max_seq_mult_prob_error": float(by_sequence.max()),
        "mean_seq_mult_prob_error": float(by_sequence.mean()),
        "min_seq_mult_prob_error": float(by_sequence.min()),
        "mean_gen_tokens_per_sample": float(mask.sum(dim=1).mean()),
        "mean_prompt_length": float(batch.prompt_mask.sum(dim=1).float().mean()),
        "global_valid_toks": float(mask.sum()),
        "global_valid_seqs": float((mask.sum(dim=1) > 0).sum()),
    }
