"""A task of two turns: answer in digits, hear how many there were, answer again."""

from __future__ import annotations

from proveout_bench.tasks.base import Prompt
from proveout_bench.tasks.digits import DigitsTask


class DialogueTask(DigitsTask):
    """The reward is that of the second answer: its share of ASCII digits."""

    def reply(self, prompt: Prompt, answer: str) -> str:
        """How many characters of the first answer were digits."""
        count = sum("0" <= character <= "9" for character in answer)
        return f" {count} of {len(answer)}. again: "
