"""The GRPO run; and the steps of any algorithm that learns from its own scored responses."""

from __future__ import annotations

from collections.abc import Callable

from proveout_bench.algorithms.driver import drive
from proveout_bench.algorithms.grpo.learner import GrpoLearner
from proveout_bench.algorithms.grpo.measure import rollout_metrics
from proveout_bench.algorithms.learner import Experience, Learner
from proveout_bench.algorithms.rollout import Actors, Prompts, accuracy, build_actors, rewards_of
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.faults import Faults
from proveout_bench.timing import Phases


def run(config: GrpoConfig) -> None:
    """Train with GRPO as configured."""
    drive(
        config,
        "grpo",
        lambda phases: RolloutLoop(config, phases, lambda actors: GrpoLearner(config, actors, phases)),
    )


class RolloutLoop:
    """Sample, score, learn: one policy, one generator, one task, and the steps over them."""

    def __init__(
        self, config: GrpoConfig, phases: Phases, build_learner: Callable[[Actors], Learner]
    ) -> None:
        self._config, self._phases, self._faults = config, phases, Faults(config.fault)
        self._actors = actors = build_actors(config, phases)
        self.policy, self.tokenizer = actors.policy, actors.tokenizer
        self._generator, self._prompts = actors.generator, Prompts(config, actors.task)
        self._learner = build_learner(actors)
        self._batch: Batch | None = None

    def step(self, step: int) -> dict[str, float]:
        """One rollout and the update on it."""
        phases = self._phases
        with phases.phase("data_processing", "Preparing batch..."):
            prompts = self._prompts.next()
            encoded = [self.tokenizer.encode(prompt.text) for prompt in prompts]
        with (
            phases.phase("prepare_for_generation/total"),
            phases.phase("prepare_for_generation/transfer_and_update_weights"),
        ):
            self._generator.load_weights(self.policy.weights())
        refit = self._generator.refit()
        for name, seconds in refit.seconds.items():
            phases.add(f"prepare_for_generation/{name}", seconds)
        with phases.phase("generation", f"Generating responses for batch of size {len(prompts)}..."):
            batch = self._batch = self._generator.generate(encoded)
        with phases.phase("reward_calculation", "Processing rewards..."):
            rewards = rewards_of(self._actors, prompts, batch, self._faults)
        with phases.phase("policy_and_reference_logprobs", "Computing logprobs..."):
            scored, faults, config = self._faults.scored(batch), self._faults, self._config
            previous = faults.previous(self.policy.logprobs(scored), config.runtime.threads)
            reference = faults.reference(
                self.policy.reference_logprobs(scored), config.loss.kl_beta, previous
            )
        inputs, trained = self._learner.learn(step, Experience(batch, rewards, previous, reference))
        moved = {f"refit/{name}": value for name, value in refit.metrics.items()}
        return {**trained, **rollout_metrics(batch, rewards, inputs), **moved}

    def validate(self) -> dict[str, float]:
        """Mean reward on the held-out prompts."""
        return {"accuracy": accuracy(self._actors, self._prompts.held_out(), self._config.seed)}

    def sample(self) -> Batch:
        """The latest rollout."""
        if self._batch is None:
            raise RuntimeError("sample() before step()")
        return self._batch

    def parts(self) -> dict[str, Part]:
        """Policy, learner, sampler and the position in the prompts."""
        return {
            **self.policy.parts(),
            **self._learner.parts(),
            "sampler": self._generator.part(),
            "dataloader": self._prompts.part(),
        }
