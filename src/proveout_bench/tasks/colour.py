"""A task that needs its image: name the colour of a square by letters."""

from __future__ import annotations

import random
from typing import Any

from proveout_bench.config.schema import Task as TaskConfig
from proveout_bench.tasks.base import Prompt
from proveout_bench.vision import IMAGE

LETTERS = {"red": "abcdefghi", "green": "jklmnopqr", "blue": "stuvwxyz"}
COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}
SIDE = 16


class ColourTask:
    """Reward: the share of the response's characters that are letters of the colour; the text is always the same."""

    def __init__(self, config: TaskConfig) -> None:
        self._config = config

    def prompts(self, draw: random.Random, count: int) -> list[Prompt]:
        """Prompts with an image each: a square of one colour somewhere on grey."""
        names = [draw.choice(sorted(COLOURS)) for _ in range(count)]
        return [
            Prompt(f"{IMAGE}colour: ", name, square(name, draw.randrange(5), draw.randrange(5)))
            for name in names
        ]

    def reward(self, prompt: Prompt, response: str) -> float:
        """Dense, so that every group of responses carries a signal from the first step on."""
        wanted = LETTERS[prompt.answer]
        return sum(character in wanted for character in response) / len(response) if response else 0.0

    def demonstration(self, prompt: Prompt) -> str:
        """Letters of the colour."""
        return LETTERS[prompt.answer][:4]


def square(name: str, left: int, top: int) -> Any:
    """A PIL image of ``SIDE`` x ``SIDE`` pixels: a square of the colour ``name`` on grey."""
    from PIL import Image

    image = Image.new("RGB", (SIDE, SIDE), (128, 128, 128))
    image.paste(COLOURS[name], (left, top, left + 12, top + 12))
    return image
