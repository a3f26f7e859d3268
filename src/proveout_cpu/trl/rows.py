"""The rows that a trainer reads: a file of JSON lines, or one-digit sums."""

from __future__ import annotations

import random
from typing import Any

ROWS = 256
LETTERS = "0123456789abcdefgh"


COLUMNS = {
    "sft": ("prompt", "completion"),
    "dpo": ("prompt", "chosen", "rejected"),
    "grpo": ("prompt",),
    "rloo": ("prompt",),
}


class DataError(Exception):
    """Data that no trainer could read. Said before anything is built."""


def dataset(file: str, algorithm: str, seed: int) -> Any:
    """A data set with the columns of the algorithm's trainer. Raises DataError for a file that has not got them."""
    from datasets import Dataset, load_dataset

    if file:
        found = load_dataset("json", data_files=file, split="train")
        missing = [name for name in COLUMNS[algorithm] if name not in found.column_names]
        if missing:
            raise DataError(
                f"{file} has no column {', '.join(map(repr, missing))}, which {algorithm} reads; it has "
                f"{', '.join(found.column_names)}"
            )
        return found
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    return Dataset.from_list([_row(draw) for _ in range(ROWS)])


def demonstrations(seed: int) -> Any:
    """What the warm start imitates: short answers of digits and letters in equal measure, so that a reward for
    digits has room to rise and to fall."""
    from datasets import Dataset

    draw = random.Random(f"{seed} warm")  # noqa: S311 - not for secrets
    rows = []
    for _ in range(ROWS):
        text = "".join(draw.choice(LETTERS) for _ in range(draw.randint(2, 6)))
        rows.append({"prompt": _row(draw)["prompt"], "completion": _said(text)})
    return Dataset.from_list(rows)


def _row(draw: random.Random) -> dict[str, Any]:
    first, second, off = draw.randint(0, 9), draw.randint(0, 9), draw.randint(1, 9)
    right = str(first + second)
    return {
        "prompt": [{"role": "user", "content": f"What is {first}+{second}?"}],
        "answer": right,
        "completion": _said(right),
        "chosen": _said(right),
        "rejected": _said(draw.choice("abcdefgh") * off),
    }


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]
