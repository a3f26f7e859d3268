"""A short supervised start on one-digit sums, so that a tiny model's rewards are neither all zero nor all one."""

from __future__ import annotations

import random
from typing import Any

from proveout_cpu.tiny.sums import answer, question

ROWS = 32
LEARNING_RATE = 2e-3
IGNORED = -100


def warm_start(model: Any, tokenizer: Any, steps: int, seed: int) -> float:
    """Train all weights in place for ``steps`` updates of ``ROWS`` rows; the last loss (nats a token).

    The loss is that of the answer alone, its end token included.
    """
    import torch

    draw = random.Random(seed)  # noqa: S311 - not for secrets
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    model.train()
    loss = torch.zeros(())
    for _ in range(steps):
        ids, labels = _batch([_row(tokenizer, draw) for _ in range(ROWS)], tokenizer.pad_token_id)
        loss = model(input_ids=ids, labels=labels, attention_mask=(ids != tokenizer.pad_token_id).long()).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    return float(loss)


def _row(tokenizer: Any, draw: random.Random) -> tuple[list[int], list[int]]:
    first, second = draw.randint(0, 9), draw.randint(0, 9)
    chat = [{"role": "user", "content": question(first, second)}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    reply = answer(first + second) + tokenizer.eos_token
    return tokenizer(text)["input_ids"], tokenizer(reply)["input_ids"]


def _batch(rows: list[tuple[list[int], list[int]]], pad: int) -> tuple[Any, Any]:
    import torch

    longest = max(len(prompt) + len(reply) for prompt, reply in rows)
    fill = [longest - len(prompt) - len(reply) for prompt, reply in rows]
    ids = [prompt + reply + [pad] * more for (prompt, reply), more in zip(rows, fill, strict=True)]
    labels = [
        [IGNORED] * len(prompt) + reply + [IGNORED] * more
        for (prompt, reply), more in zip(rows, fill, strict=True)
    ]
    return torch.tensor(ids), torch.tensor(labels)
