"""Demonstrations as batches, in an order that is drawn anew for each epoch."""

from __future__ import annotations

import random
from typing import Any

import torch

from proveout_bench.batch import Batch, pad_left
from proveout_bench.tasks.base import Prompt, Task
from proveout_bench.tokenizer import Tokenizer


class Demonstrations:
    """``count`` prompts of ``task`` with their demonstrations, drawn with ``seed``; batches of ``size``.

    An epoch's last, smaller batch is left out.
    """

    def __init__(self, task: Task, count: int, size: int, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - the order needs a repeatable draw, not a secret one
        self._pairs = [(prompt, task.demonstration(prompt)) for prompt in task.prompts(self._draw, count)]
        self._size, self._order, self._place = size, list[int](), 0

    def next(self) -> list[tuple[Prompt, str]]:
        """The next batch."""
        if self._place + self._size > len(self._order):
            self._order, self._place = list(range(len(self._pairs))), 0
            self._draw.shuffle(self._order)
        taken = self._order[self._place : self._place + self._size]
        self._place += self._size
        return [self._pairs[index] for index in taken]

    def state_dict(self) -> dict[str, Any]:
        """Order and position of the epoch, and the draw of the orders to come."""
        return {"order": self._order, "place": self._place, "draw": self._draw.getstate()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._order, self._place = list(state["order"]), int(state["place"])
        self._draw.setstate(state["draw"])


def as_batch(pairs: list[tuple[Prompt, str]], tokenizer: Tokenizer, device: str) -> Batch:
    """Prompts padded on the left, demonstrations with the end token padded on the right."""
    ids, mask = pad_left([tokenizer.encode(prompt.text) for prompt, _ in pairs], tokenizer.pad_id)
    answers = [[*tokenizer.encode(text), *tokenizer.eos_ids[:1]] for _, text in pairs]
    width = max(len(answer) for answer in answers)
    responses = torch.tensor([row + [tokenizer.pad_id] * (width - len(row)) for row in answers])
    valid = torch.tensor([[1.0] * len(row) + [0.0] * (width - len(row)) for row in answers])
    batch = Batch(torch.cat([ids, responses], dim=1), mask, valid, torch.zeros_like(valid))
    return batch.to(device)
