"""Where the responses of each step come from: sampled in the step, or one step ahead while the one before trains."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from proveout_bench.algorithms.rollout import Actors, Prompts, respond
from proveout_bench.batch import Batch
from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import BenchError
from proveout_bench.faults import Faults
from proveout_bench.forward import response_logprobs
from proveout_bench.metrics import formulas
from proveout_bench.refit.report import RefitReport
from proveout_bench.tasks.base import Prompt
from proveout_bench.timing import Phases


class StaleRolloutError(BenchError):
    """Samples are of weights older than ``rollout.lag`` allows."""


@dataclass(frozen=True)
class Rollout:
    """Prompts with their responses, the text of the answers that are scored, and what the refit did."""

    prompts: list[Prompt]
    batch: Batch
    answers: list[str]
    refit: RefitReport
    metrics: dict[str, float]


class Rollouts(Protocol):
    """A source of rollouts."""

    def next(self, step: int) -> Rollout:
        """The one that ``step`` (from 1) learns from."""
        ...

    def settle(self) -> None:
        """Make the generator free for other prompts."""
        ...


class InStep:
    """Refit, then sample: on-policy."""

    def __init__(self, actors: Actors, prompts: Prompts, phases: Phases, faults: Faults) -> None:
        self._actors, self._prompts, self._phases, self._faults = actors, prompts, phases, faults

    def next(self, step: int) -> Rollout:
        """Sampled by the weights as they are."""
        with self._phases.phase("data_processing", "Preparing batch..."):
            prompts = self._prompts.next()
        report = refit(self._actors, self._phases)
        with self._phases.phase("generation", f"Generating responses for batch of size {len(prompts)}..."):
            batch, answers = respond(self._actors, prompts, self._faults)
        return Rollout(prompts, batch, answers, report, {})

    def settle(self) -> None:
        """Nothing is under way."""


class OneStepOff:
    """The rollout of the next step is sampled while this one trains, by the weights before its update.

    Each sample carries the version of the weights that the generation process said it used; ``next`` raises
    StaleRolloutError where they are older than ``lag`` updates. A copy of those weights scores the samples anew.
    """

    def __init__(
        self, config: RunConfig, actors: Actors, prompts: Prompts, phases: Phases, faults: Faults
    ) -> None:
        self._config, self._actors, self._prompts = config, actors, prompts
        self._phases, self._faults = phases, faults
        self._generator: Any = actors.generator
        self._behaviour = Snapshot(actors.model)
        self._updates: dict[int, int] = {}
        self._asked: list[Prompt] = []
        self._sampled: list[tuple[Batch, int]] = []
        self._under_way = False

    def next(self, step: int) -> Rollout:
        """What was asked for a step ago; then the next one is begun."""
        report = RefitReport()
        if step == 1:
            report = self._refit(step)
            self._begin()
        with self._phases.phase(
            "generation", f"Generating responses for batch of size {len(self._asked)}..."
        ):
            self.settle()
        prompts, (batch, version) = self._asked, self._sampled.pop()
        versions = torch.full((len(batch.input_ids),), version)
        metrics = {**self._lag(step, versions), **self._behaviour.measure(batch, self._config)}
        if step < self._config.max_steps:
            if step > 1 and self._faults.refits(step):
                report = self._refit(step)
            self._begin()
        answers = [self._actors.tokenizer.decode(ids) for ids in batch.responses().tolist()]
        return Rollout(prompts, batch, answers, report, metrics)

    def settle(self) -> None:
        """Wait for what is under way and keep it."""
        if self._under_way:
            batch = self._generator.finish()
            self._sampled.append((batch, self._generator.sampled_version))
            self._under_way = False

    def _begin(self) -> None:
        with self._phases.phase("data_processing", "Preparing batch..."):
            self._asked = self._prompts.next()
            encoded = [self._actors.tokenizer.encode(prompt.text) for prompt in self._asked]
        self._generator.start(encoded)
        self._under_way = True

    def _refit(self, step: int) -> RefitReport:
        report = refit(self._actors, self._phases)
        self._updates[int(report.metrics["weight_version"])] = step - 1
        self._behaviour.take(self._actors.policy.weights())
        return report

    def _lag(self, step: int, versions: Tensor) -> dict[str, float]:
        updates = [self._updates[version] for version in versions.tolist()]
        lags = [step - 1 - count for count in updates]
        if max(lags) > self._config.rollout.lag:
            raise StaleRolloutError(
                f"step {step}: samples of weights {max(lags)} updates old (version {int(versions.min())}); "
                f"rollout.lag={self._config.rollout.lag} is the most"
            )
        return {
            "rollout/lag_max": float(max(lags)),
            "rollout/lag_mean": sum(lags) / len(lags),
            "rollout/version_min": float(versions.min()),
            "rollout/version_max": float(versions.max()),
        }


class Snapshot:
    """The weights that a rollout was sampled with, to score it once more."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = copy.deepcopy(model).requires_grad_(False)
        self._own = dict(self._model.named_parameters())

    def take(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy ``weights``."""
        with torch.no_grad():
            for name, weight in weights:
                self._own[name].copy_(weight)

    def measure(self, batch: Batch, config: RunConfig) -> dict[str, float]:
        """How far the generator's log-probabilities are from those of these weights."""
        with torch.no_grad():
            again = response_logprobs(self._model, batch, config.rollout.temperature).double()
        sides = batch.generation_logprobs.double(), again, batch.response_mask
        return {"rollout/behaviour_mult_prob_error": formulas.token_mult_prob_error(*sides)}


def build(config: RunConfig, actors: Actors, prompts: Prompts, phases: Phases) -> Rollouts:
    """As ``rollout.lag`` asks."""
    faults = Faults(config.fault)
    if config.rollout.lag:
        return OneStepOff(config, actors, prompts, phases, faults)
    return InStep(actors, prompts, phases, faults)


def refit(actors: Actors, phases: Phases) -> RefitReport:
    """Bring the policy's weights to the generator."""
    with (
        phases.phase("prepare_for_generation/total"),
        phases.phase("prepare_for_generation/transfer_and_update_weights"),
    ):
        actors.generator.load_weights(actors.policy.weights())
    report = actors.generator.refit()
    for name, seconds in report.seconds.items():
        phases.add(f"prepare_for_generation/{name}", seconds)
    return report
