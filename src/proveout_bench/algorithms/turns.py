"""Rollouts of several turns: the policy answers, the environment replies, the policy answers again.

Answers and replies stand one after another in the response of a row; replies are masked out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch

from proveout_bench.batch import Batch, pad_left
from proveout_bench.tasks.base import Prompt
from proveout_bench.tokenizer import Tokenizer


@runtime_checkable
class Environment(Protocol):
    """A task that replies to the first answer."""

    def reply(self, prompt: Prompt, answer: str) -> str:
        """What the environment says to ``answer`` (special tokens already removed); the same each time."""
        ...


def converse(
    generate: Callable[[list[list[int]]], Batch],
    environment: Environment,
    tokenizer: Tokenizer,
    prompts: Sequence[Prompt],
) -> tuple[Batch, list[str]]:
    """Two answers to each prompt as one batch, and the text of the second ones."""
    encoded = [tokenizer.encode(prompt.text) for prompt in prompts]
    first = generate(encoded)
    opened = [_tokens(first, row) for row in range(len(prompts))]
    replies = [
        tokenizer.encode(environment.reply(prompt, tokenizer.decode(answer)))
        for prompt, answer in zip(prompts, opened, strict=True)
    ]
    parts = zip(encoded, opened, replies, strict=True)
    second = generate([[*prompt, *answer, *reply] for prompt, answer, reply in parts])
    closed = [_tokens(second, row) for row in range(len(prompts))]
    batch = _together(encoded, [first, second], [opened, closed], replies, tokenizer.pad_id)
    return batch.to(str(first.input_ids.device)), [tokenizer.decode(answer) for answer in closed]


def _tokens(batch: Batch, row: int) -> list[int]:
    """The answer of ``row``, with its end token."""
    found: list[int] = batch.responses()[row][batch.response_mask[row] > 0].tolist()
    return found


def _together(
    prompts: list[list[int]],
    sampled: list[Batch],
    answers: list[list[list[int]]],
    replies: list[list[int]],
    pad_id: int,
) -> Batch:
    opened, closed = answers
    rows = [[*a, *reply, *b] for a, reply, b in zip(opened, replies, closed, strict=True)]
    width = max(len(row) for row in rows)
    tokens = torch.full((len(rows), width), pad_id)
    mask, logprobs = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
        begins = (0, len(opened[number]) + len(replies[number]))
        for batch, turn, begin in zip(sampled, answers, begins, strict=True):
            end = begin + len(turn[number])
            mask[number, begin:end] = 1.0
            logprobs[number, begin:end] = batch.generation_logprobs[number, : end - begin].cpu()
    ids, prompt_mask = pad_left(prompts, pad_id)
    return Batch(torch.cat([ids, tokens], dim=1), prompt_mask, mask, logprobs)


def check(
    batch: Batch, prompts: Sequence[Prompt], environment: Environment, tokenizer: Tokenizer, longest: int
) -> dict[str, float]:
    """Are the environment's tokens, and they alone, masked out of ``batch``? Found from the tokens themselves.

    ``longest``: tokens of an answer at most. ``mask_error`` counts places of the mask that are wrong and tokens that
    are not the environment's reply; ``environment_tokens_in_loss`` those of the environment that count.
    """
    wrong, replied, counted = 0, 0, 0
    for row, prompt in enumerate(prompts):
        tokens, mask = batch.responses()[row].tolist(), (batch.response_mask[row] > 0).tolist()
        first = _answer(tokens, tokenizer, longest)
        reply = tokenizer.encode(environment.reply(prompt, tokenizer.decode(first)))
        begin = len(first) + len(reply)
        second = _answer(tokens[begin:], tokenizer, longest)
        wanted = [True] * len(first) + [False] * len(reply) + [True] * len(second)
        wanted += [False] * (len(tokens) - len(wanted))
        wrong += sum(one is not other for one, other in zip(mask, wanted, strict=True))
        wrong += sum(one != other for one, other in zip(tokens[len(first) : begin], reply, strict=True))
        replied += len(reply)
        counted += sum(mask[len(first) : begin])
    return {
        "mask_error": float(wrong),
        "environment_tokens": float(replied),
        "environment_tokens_in_loss": float(counted),
    }


def _answer(tokens: list[int], tokenizer: Tokenizer, longest: int) -> list[int]:
    """Up to and with the first end token, ``longest`` at most."""
    for place, token in enumerate(tokens[:longest]):
        if token in tokenizer.eos_ids:
            return tokens[: place + 1]
    return tokens[:longest]
