"""Prompts to scored responses: what every algorithm that learns from its own responses does first."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from proveout_bench import models, ranks, registry
from proveout_bench.algorithms.turns import Environment, converse
from proveout_bench.backends.base import PolicyBackend
from proveout_bench.batch import Batch
from proveout_bench.checkpoint.state import PythonRandom
from proveout_bench.checkpoint.store import Stateful
from proveout_bench.config.schema import RunConfig
from proveout_bench.faults import Faults
from proveout_bench.generation.base import Generator
from proveout_bench.generation.shared import SharedGenerator
from proveout_bench.rewards.base import Rewarder
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.timing import Phases
from proveout_bench.tokenizer import Tokenizer
from proveout_bench.vision import Processor

RULES = "rules"
HELD_OUT = 0x5EED


@dataclass(frozen=True)
class Actors:
    """The policy, the generator that samples for it, the task, and the untouched model that both began as."""

    policy: PolicyBackend
    generator: Generator
    task: Task
    tokenizer: Tokenizer
    model: torch.nn.Module
    rewarder: Rewarder
    processor: Processor | None = None


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
            registry.load(registry.MEETINGS, config.backend)(config.runtime)
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
    kind = config.reward.kind
    with phases.phase("reward_init_time_s", "" if kind == RULES else "Setting up reward model..."):
        rewarder: Rewarder = registry.load(registry.REWARDS, kind)(config, task, tokenizer)
    processor = Processor(config.tiny.image_size) if config.tiny.image_size else None
    return Actors(policy, generator, task, tokenizer, model, rewarder, processor)


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


def respond(actors: Actors, prompts: list[Prompt], faults: Faults) -> tuple[Batch, list[str]]:
    """A response to each prompt, and the text of the answer in it that is scored: the last one of a dialogue."""
    if isinstance(actors.task, Environment):
        return converse(actors.generator.generate, actors.task, actors.tokenizer, prompts)
    texts = [prompt.text for prompt in prompts]
    if actors.processor is None:
        batch = actors.generator.generate([actors.tokenizer.encode(text) for text in texts])
    else:
        pixels = faults.pixels(actors.processor.pixels([prompt.image for prompt in prompts]))
        encoded = [actors.tokenizer.encode(actors.processor.expand(text)) for text in texts]
        batch = actors.generator.generate(encoded, pixels)
    return batch, [actors.tokenizer.decode(ids) for ids in batch.responses().tolist()]


def rewards_of(
    actors: Actors, prompts: list[Prompt], answers: list[str], batch: Batch, faults: Faults
) -> Tensor:
    """What the rewarder gives, float32 [B]."""
    scores = actors.rewarder.score(prompts, answers)
    return faults.rewards(torch.tensor(scores, dtype=torch.float32, device=batch.input_ids.device))


def accuracy(actors: Actors, prompts: list[Prompt], seed: int) -> float:
    """Mean reward, by the task's rule, of one response to each prompt.

    The policy samples them as it is now, always from ``seed``."""
    sampler = actors.generator.part()
    before = sampler.state_dict()
    actors.generator.load_weights(actors.policy.weights())
    actors.generator.reseed(seed)
    _, answers = respond(actors, prompts, Faults.none())
    sampler.load_state_dict(before)
    scores = [actors.task.reward(prompt, text) for prompt, text in zip(prompts, answers, strict=True)]
    return sum(scores) / len(scores)
