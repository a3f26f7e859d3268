"""The GRPO run; and the steps of any algorithm that learns from its own scored responses."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from proveout_bench.algorithms import rollouts, turns
from proveout_bench.algorithms.driver import drive
from proveout_bench.algorithms.grpo import oracle
from proveout_bench.algorithms.grpo.learner import GrpoLearner
from proveout_bench.algorithms.grpo.measure import rollout_metrics
from proveout_bench.algorithms.learner import Experience, Learner
from proveout_bench.algorithms.rollout import Actors, Prompts, accuracy, build_actors, rewards_of
from proveout_bench.algorithms.turns import Environment
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.store import Part
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.faults import Faults
from proveout_bench.tasks.base import Prompt
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
        self._rollouts = rollouts.build(config, actors, self._prompts, phases)
        self._learner = build_learner(actors)
        self._batch: Batch | None = None
        self._start: tuple[Batch, Tensor] | None = None

    def step(self, step: int) -> dict[str, float]:
        """One rollout and the update on it."""
        phases = self._phases
        rollout = self._rollouts.next(step)
        batch = self._batch = rollout.batch
        with phases.phase("reward_calculation", "Processing rewards..."):
            rewards = rewards_of(self._actors, rollout.prompts, rollout.answers, batch, self._faults)
        with phases.phase("policy_and_reference_logprobs", "Computing logprobs..."):
            scored = self._faults.scored(batch)
            previous = self._faults.previous(self.policy.logprobs(scored), self._config.runtime.threads)
            reference = self._reference(scored, previous)
            checked = self._check(batch, scored, previous, reference)
        batch = self._faults.counted(batch)
        checked |= self._masks(rollout.prompts, batch)
        inputs, trained = self._learner.learn(step, Experience(batch, rewards, previous, reference))
        moved = {f"refit/{name}": value for name, value in rollout.refit.metrics.items()}
        scores = self._actors.rewarder.measure()
        return {
            **trained,
            **rollout_metrics(batch, rewards, inputs),
            **rollout.metrics,
            **scores,
            **moved,
            **checked,
        }

    def _masks(self, prompts: list[Prompt], batch: Batch) -> dict[str, float]:
        if isinstance(self._actors.task, Environment):
            longest = self._config.rollout.max_new_tokens
            return turns.check(batch, prompts, self._actors.task, self.tokenizer, longest)
        return {"mask_error": oracle.mask_error(batch, self.tokenizer.eos_ids)}

    def _reference(self, batch: Batch, previous: Tensor) -> Tensor:
        return self._faults.reference(
            self.policy.reference_logprobs(batch), self._config.loss.kl_beta, previous
        )

    def _check(self, batch: Batch, scored: Batch, previous: Tensor, reference: Tensor) -> dict[str, float]:
        """Do policy and reference score as they must: the policy by its own logits, the reference as at the start?"""
        rows = torch.arange(min(oracle.ROWS, len(scored.input_ids)), device=scored.input_ids.device)
        if self._start is None:
            self._start = scored.rows(rows), reference[rows]
        first, then = self._start
        now = self._reference(first, self.policy.logprobs(first))
        drift = ((now - then).abs() * first.response_mask).max()
        wrong = oracle.logprob_error(self.policy, batch, previous, self._config.rollout.temperature)
        effect = oracle.image_effect(self.policy, scored.rows(rows), previous[rows])
        return {"logprob_error_max": wrong, "reference_drift": float(drift), **effect}

    def validate(self) -> dict[str, float]:
        """Mean reward on the held-out prompts."""
        self._rollouts.settle()
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
