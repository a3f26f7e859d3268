"""One-digit sums as data sets: small, true, and what the warm start of a tiny model teaches."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout.assets.files import new_file

SPLITS = ("train", "test")


def sums(split: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """``count`` questions with their answers, the same for the same seed."""
    draw = random.Random(f"{seed} {split}")  # noqa: S311 - not for secrets
    for _ in range(count):
        first, second = draw.randint(0, 9), draw.randint(0, 9)
        yield f"What is {first}+{second}?", str(first + second)


def nemo_rl(split: str, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows for NeMo-RL's ResponseDataset: input and output."""
    return ({"input": question, "output": answer} for question, answer in sums(split, count, seed))


def trl(split: str, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows that each of TRL's trainers finds its columns in.

    prompt and answer for GRPO and RLOO, completion for SFT, chosen and rejected for DPO; all as chat messages.
    """
    draw = random.Random(f"{seed} {split} rejected")  # noqa: S311 - not for secrets
    for question, answer in sums(split, count, seed):
        wrong = str((int(answer) + draw.randint(1, 9)) % 19)
        right = [{"role": "assistant", "content": boxed(answer)}]
        yield {
            "prompt": [{"role": "user", "content": question}],
            "answer": answer,
            "completion": right,
            "chosen": right,
            "rejected": [{"role": "assistant", "content": boxed(wrong)}],
        }


def verl(split: str, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows for verl's GSM8K reward, which looks for ``#### NUMBER``."""
    from proveout.assets.gsm8k import row

    for index, (question, answer) in enumerate(sums(split, count, seed)):
        yield row(question, f"#### {answer}", split, index, "Put the final number after ####.")


def boxed(answer: str) -> str:
    """An answer as mathematics rewards look for it."""
    return f"\\boxed{{{answer}}}"


def write_lines(file: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write rows as JSON lines, whole or not at all; the number of rows."""
    lines = [json.dumps(row) + "\n" for row in rows]
    with new_file(file) as place:
        place.write_text("".join(lines), encoding="utf-8")
    return len(lines)
