"""GRPO's learner: group advantages and the clipped-ratio loss."""

from __future__ import annotations

from proveout_bench.algorithms.grpo import oracle
from proveout_bench.algorithms.grpo.advantage import group_advantages
from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.algorithms.grpo.train import Updater
from proveout_bench.algorithms.learner import Experience
from proveout_bench.algorithms.rollout import Actors
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.faults import Faults
from proveout_bench.timing import Phases


class GrpoLearner:
    """Updates the policy of ``actors``."""

    def __init__(self, config: GrpoConfig, actors: Actors, phases: Phases) -> None:
        self._config, self._phases, self._faults = config, phases, Faults(config.fault)
        self._updater = Updater(config.loss, actors.policy, self._faults, config.seed)

    def learn(self, step: int, experience: Experience) -> tuple[LossInputs, dict[str, float]]:
        """Each token of a response gets the advantage of the response."""
        with self._phases.phase("advantage_calculation", "Computing advantages..."):
            advantages = group_advantages(
                self._faults.grouped(experience.rewards, self._config.rollout.group_size),
                self._config.rollout.group_size,
                self._config.loss.normalize_advantages,
            )
            by_token = advantages.unsqueeze(1).expand_as(experience.previous)
            inputs = experience.inputs(self._faults.advantages(by_token))
        with self._phases.phase("policy_training", "Training policy..."):
            trained = self._updater.run(step, experience.batch, inputs)
        wrong = oracle.advantage_error(
            inputs.advantages,
            experience.rewards,
            self._config.rollout.group_size,
            self._config.loss.normalize_advantages,
        )
        return inputs, {**trained, "advantages/error_max": wrong}

    def parts(self) -> dict[str, Stateful]:
        """The order of the minibatches."""
        return self._updater.parts()
