"""A task with a verifiable answer: sums of two small numbers."""

from __future__ import annotations

import random
import re

from proveout_bench.config.schema import Task as TaskConfig
from proveout_bench.tasks.base import Prompt

_INTEGER = re.compile(r"-?[0-9]+")


class ArithmeticTask:
    """Reward: 1 if the first integer of the response equals the sum, else 0."""

    def __init__(self, config: TaskConfig) -> None:
        self._largest = config.max_operand

    def prompts(self, draw: random.Random, count: int) -> list[Prompt]:
        """Prompts ``a+b=`` with both operands from 0 to the largest operand."""
        pairs = [(draw.randint(0, self._largest), draw.randint(0, self._largest)) for _ in range(count)]
        return [Prompt(f"{a}+{b}=", str(a + b)) for a, b in pairs]

    def reward(self, prompt: Prompt, response: str) -> float:
        """Compare as integers, so that ``07`` is 7 and a response without an integer scores 0."""
        found = _INTEGER.search(response)
        return float(found is not None and int(found.group()) == int(prompt.answer))

    def demonstration(self, prompt: Prompt) -> str:
        """The sum."""
        return prompt.answer
