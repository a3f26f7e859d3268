"""A task that a randomly initialised model learns from scratch: answer in digits."""

from __future__ import annotations

import random

from proveout_bench.config.schema import Task as TaskConfig
from proveout_bench.tasks.base import Prompt


class DigitsTask:
    """Reward: the share of the response's characters that are ASCII digits; 0 for an empty response."""

    def __init__(self, config: TaskConfig) -> None:
        self._config = config

    def prompts(self, draw: random.Random, count: int) -> list[Prompt]:
        """Prompts that name a number; all have the same length, unless ``ragged`` is asked for."""
        if self._config.ragged:
            return [Prompt(f"digits after {10 ** draw.randrange(6)}: ") for _ in range(count)]
        return [Prompt(f"digits after {draw.randrange(10, 100)}: ") for _ in range(count)]

    def reward(self, prompt: Prompt, response: str) -> float:
        """Dense, so that every group of responses carries a signal from the first step on."""
        return sum("0" <= character <= "9" for character in response) / len(response) if response else 0.0

    def demonstration(self, prompt: Prompt) -> str:
        """The number that the prompt names."""
        return "".join(character for character in prompt.text if "0" <= character <= "9")
