"""One-digit sums: the text that a tokenizer is trained on and that a warm start teaches."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

WORDS = ("system", "user", "assistant", "You are a helpful assistant.", "Put the final number after ####.")


def question(first: int, second: int) -> str:
    """The question as every toy data set of proveout asks it."""
    return f"What is {first}+{second}?"


def answer(value: int) -> str:
    """The answer in a box, as mathematics rewards look for it."""
    return f"\\boxed{{{value}}}"


def tokenizer_corpus() -> Iterator[str]:
    """All questions with their answers, and the words of the chat."""
    for first in range(10):
        for second in range(10):
            yield f"{question(first, second)} Answer: {answer(first + second)} #### {first + second}"
    for word in WORDS:
        yield from [word] * 20


def write_responses(file: Path, rows: int, seed: int = 0) -> None:
    """Write questions and answers as JSON lines with input and output, as NeMo-RL's ResponseDataset reads them."""
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    lines = []
    for _ in range(rows):
        first, second = draw.randint(0, 9), draw.randint(0, 9)
        lines.append(json.dumps({"input": question(first, second), "output": str(first + second)}) + "\n")
    file.write_text("".join(lines), encoding="utf-8")
