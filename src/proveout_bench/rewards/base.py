"""What scores responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proveout_bench.config.schema import RunConfig
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.tokenizer import Tokenizer


class Rewarder(Protocol):
    """Scores one answer a prompt."""

    def score(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> list[float]:
        """One reward for each answer (its text, without special tokens)."""
        ...

    def measure(self) -> dict[str, float]:
        """Metrics of the latest ``score``."""
        ...


class Rules:
    """The task's own rule."""

    def __init__(self, config: RunConfig, task: Task, tokenizer: Tokenizer) -> None:
        self._task = task

    def score(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> list[float]:
        """Rewards in [0, 1]."""
        return [self._task.reward(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]

    def measure(self) -> dict[str, float]:
        """Nothing besides the reward."""
        return {}
