"""PPO's learner: advantages from the critic, the clipped policy loss, and the critic's update."""

from __future__ import annotations

from proveout_bench.algorithms.grpo.loss import LossInputs
from proveout_bench.algorithms.grpo.train import Updater
from proveout_bench.algorithms.learner import Experience
from proveout_bench.algorithms.ppo.critic import Critic
from proveout_bench.algorithms.ppo.gae import advantages_and_returns, terminal_rewards, whiten
from proveout_bench.algorithms.rollout import Actors
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import PpoConfig
from proveout_bench.faults import Faults
from proveout_bench.timing import Phases


class PpoLearner:
    """Updates the policy of ``actors`` and a critic that starts from the same model."""

    def __init__(self, config: PpoConfig, actors: Actors, phases: Phases) -> None:
        self._config, self._phases, self._faults = config, phases, Faults(config.fault)
        self._updater = Updater(config.loss, actors.policy, self._faults, config.seed)
        with phases.phase("critic_init_time_s", "Setting up critic..."):
            self._critic = Critic(config, actors.model)

    def learn(self, step: int, experience: Experience) -> tuple[LossInputs, dict[str, float]]:
        """The reward stands on the last token; each token gets its own advantage."""
        batch, settings = experience.batch, self._config.critic
        mask = batch.response_mask
        with self._phases.phase("value_inference", "Computing values..."):
            values = self._critic.values(batch)
        with self._phases.phase("advantage_calculation", "Computing advantages..."):
            placed = terminal_rewards(experience.rewards, mask)
            advantages, returns = advantages_and_returns(placed, values, mask, settings.gamma, settings.lam)
            if self._config.loss.normalize_advantages:
                advantages = whiten(advantages, mask)
            inputs = experience.inputs(self._faults.advantages(advantages))
        with self._phases.phase("critic_training", "Training critic..."):
            valued = self._critic.update(batch, values, returns)
        with self._phases.phase("policy_training", "Training policy..."):
            trained = self._updater.run(step, batch, inputs)
        return inputs, {**trained, **{f"critic/{name}": value for name, value in valued.items()}}

    def parts(self) -> dict[str, Stateful]:
        """The critic and the order of the minibatches."""
        return {**self._updater.parts(), **self._critic.parts()}
