"""The PPO run."""

from __future__ import annotations

from proveout_bench.algorithms.driver import drive
from proveout_bench.algorithms.grpo.loop import RolloutLoop
from proveout_bench.algorithms.ppo.learner import PpoLearner
from proveout_bench.config.schema import PpoConfig


def run(config: PpoConfig) -> None:
    """Train with PPO as configured."""
    drive(
        config,
        "ppo",
        lambda phases: RolloutLoop(config, phases, lambda actors: PpoLearner(config, actors, phases)),
    )
