"""Prompts to scored responses: what every algorithm that learns from its own responses does first."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from proveout_bench import models, ranks, registry
from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.state import PythonRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.generation.base import Generator
from proveout_bench.generation.shared import SharedGenerator
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.timing import Phases
from proveout_bench.tokenizer import Tokenizer

HELD_OUT = 0x5EED


@dataclass(frozen=True)
class Actors:
    """The policy, the generator that samples for it, the task, and the untouched model that both began as."""

    policy: PolicyBackend
    generator: Generator
    task: Task
    tokenizer: Tokenizer
    model: torch.nn.Module


def build_actors(config: RunConfig, phases: Phases) -> Actors:
    """All of them, as the configuration names them."""
    task: Task = registry.load(registry.TASKS, config.task.name)(config.task)
    with phases.phase("policy_init_time_s", "Setting up model and training..."):
        model, tokenizer = models.load(config)
        forked = (
            _engine(config, model, tokenizer)
            if config.rollout.engine in registry.FORKED and ranks.first()
            else None
        )
        if config.backend in registry.MEETINGS:
            registry.load(registry.MEETINGS, config.backend)(config.runtime.device)
        model = model.to(config.runtime.device)
        policy: PolicyBackend = registry.load(registry.BACKENDS, config.backend)(
            config, Faults(config.fault).policy_model(model)
        )
    with phases.phase("generation_init_time_s", f"Setting up generation ({config.rollout.engine})..."):
        generator: Generator | None = None
        if config.rollout.engine == registry.BY_POLICY:
            generator = policy.generator(tokenizer)
        elif ranks.first():
            generator = forked or _engine(config, model, tokenizer)
        if generator is None or (ranks.world() > 1 and config.rollout.engine != registry.BY_POLICY):
            generator = SharedGenerator(generator, config.runtime.device)
    return Actors(policy, generator, task, tokenizer, model)


def _engine(config: RunConfig, model: torch.nn.Module, tokenizer: Tokenizer) -> Generator:
    generator: Generator = registry.load(registry.ENGINES, config.rollout.engine)(config, model, tokenizer)
    return generator


class Prompts:
    """The prompts of each step, drawn from the seed, and those held out for validation."""

    def __init__(self, config: RunConfig, task: Task) -> None:
        self._config, self._task = config, task
        self._draw = random.Random(config.seed)  # noqa: S311 - prompts need a repeatable draw, not a secret one

    def next(self) -> list[Prompt]:
        """The prompts of one step, each as often as its group is large."""
        drawn = self._task.prompts(self._draw, self._config.rollout.prompts)
        return [prompt for prompt in drawn for _ in range(self._config.rollout.group_size)]

    def held_out(self) -> list[Prompt]:
        """The same prompts at each call, from a draw of their own."""
        draw = random.Random(self._config.seed ^ HELD_OUT)  # noqa: S311 - see above
        return self._task.prompts(draw, self._config.validation.prompts)

    def part(self) -> Stateful:
        """The position in the sequence of prompts."""
        return PythonRandom(self._draw)


def rewards_of(actors: Actors, prompts: list[Prompt], batch: Batch, faults: Faults) -> Tensor:
    """Rule rewards, float32 [B]."""
    texts = [actors.tokenizer.decode(ids) for ids in batch.responses().tolist()]
    scores = [actors.task.reward(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
    return faults.rewards(torch.tensor(scores, dtype=torch.float32, device=batch.input_ids.device))


def accuracy(actors: Actors, prompts: list[Prompt], seed: int) -> float:
    """Mean reward of one response to each prompt, sampled by the policy as it is now, always from ``seed``."""
    sampler = actors.generator.part()
    before = sampler.state_dict()
    actors.generator.load_weights(actors.policy.weights())
    actors.generator.reseed(seed)
    batch = actors.generator.generate([actors.tokenizer.encode(prompt.text) for prompt in prompts])
    sampler.load_state_dict(before)
    return float(rewards_of(actors, prompts, batch, Faults.none()).mean())
