"""Reward functions with TRL's signature: completions in, one number each out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Reward = Callable[..., list[float]]


def digits(completions: list[Any], **columns: Any) -> list[float]:
    """The share of an answer's characters that are digits: dense, so that a few steps show a trend."""
    return [sum(c.isdigit() for c in text) / max(len(text), 1) for text in map(_text, completions)]


def answer(completions: list[Any], answer: list[str], **columns: Any) -> list[float]:  # noqa: A002, RUF100
    """1 where the right number stands in the answer's box."""
    return [
        float(f"\\boxed{{{right}}}" in text)
        for text, right in zip(map(_text, completions), answer, strict=True)
    ]


def raising(completions: list[Any], **columns: Any) -> list[float]:
    """A reward function with a defect, to see how a run shows it."""
    return [len(_text(text)) / 0 for text in completions]


REWARDS: dict[str, Reward] = {"digits": digits, "answer": answer, "raising": raising}


def _text(completion: Any) -> str:
    """The text of a completion, which is a string or a list of chat messages."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])
