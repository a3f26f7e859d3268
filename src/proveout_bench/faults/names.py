"""The names that ``fault.inject`` may have. Nothing here imports torch."""

from __future__ import annotations

NAMES = (
    *("mapping-swapped-qk", "mapping-missing-bias", "mapping-transposed", "mapping-wrong-shard"),
    *("mapping-unmapped", "mapping-tied-lost", "mapping-gate-up-swapped", "mapping-layers-swapped"),
    *("mapping-expert-order", "mapping-router-unmapped", "mapping-tp-shard-swapped"),
    *("config-rope-theta", "config-norm-epsilon", "config-activation", "config-zero-centred-gamma"),
    "config-attention-scale",
    *("lora-binds-nothing", "lora-one-module-lost", "lora-scaled-twice"),
    *("refit-stale", "refit-late-by-one", "refit-stale-silent", "refit-bucket-lost", "refit-old-version"),
    *("refit-delta-first", "refit-lost-weights", "refit-rounded", "refit-prefix-kept", "refit-name-left-out"),
    *("refit-bit-flipped", "refit-applied-twice"),
    *("logprobs-off-by-one", "logprobs-padding-counted", "logprobs-reference-moves", "logprobs-truncated"),
    *("advantage-groups-mixed", "loss-mask-ignored", "loss-clip-ignored", "loss-critic-frozen"),
    *("loss-microbatch-lost", "loss-environment-tokens", "reward-model-sign", "rollout-too-old"),
    *("vision-image-dropped", "vision-lost-in-generation"),
    *("optimizer-lr-zero", "optimizer-half-the-weights", "optimizer-not-reduced"),
    *("checkpoint-partial", "checkpoint-truncated", "checkpoint-old-tracker"),
    "numerics-inf-gradient",
    *("environment-disk-full", "environment-worker-killed"),
    *("environment-worker-hangs", "environment-hang"),
    *("report-stale-metrics", "report-exit-zero", "report-stops-early", "report-series-missing"),
    *("report-frozen-metrics", "report-nan-once"),
)
