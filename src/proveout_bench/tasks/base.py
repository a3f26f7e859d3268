"""What a task is."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Prompt:
    """One prompt and the answer that its reward compares with (empty where the rule needs none).

    ``image``: a PIL image for the place that the text names, or None.
    """

    text: str
    answer: str = ""
    image: Any = None


class Task(Protocol):
    """A source of prompts and a deterministic rule reward. Built from ``config.task``."""

    def prompts(self, draw: random.Random, count: int) -> list[Prompt]:
        """``count`` prompts, drawn with ``draw`` only."""
        ...

    def reward(self, prompt: Prompt, response: str) -> float:
        """Reward in [0, 1] of the response text (special tokens already removed)."""
        ...

    def demonstration(self, prompt: Prompt) -> str:
        """A response with reward 1, to be learned from."""
        ...
