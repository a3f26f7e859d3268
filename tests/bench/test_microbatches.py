"""Dynamic batching: every row once, within the budget, and the update of one whole minibatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.runs import inside

from proveout_bench import models
from proveout_bench.backends.microbatches import split
from proveout_bench.backends.passes import Passes
from proveout_bench.backends.shares import AllRows
from proveout_bench.batch import Batch, pad_left
from proveout_bench.config.schema import Fault, TinyModel
from proveout_bench.faults import Faults
from proveout_bench.metrics.formulas import masked_mean
from proveout_bench.tokenizer import CharacterTokenizer

SHAPE = TinyModel(hidden_size=32, intermediate_size=64, layers=1, init_std=0.2)


def batch_of(prompts: list[int], responses: list[int]) -> Batch:
    ids, mask = pad_left([[5 + n % 30] * n for n in prompts], 0)
    places = torch.arange(max(responses))
    valid = places < torch.tensor(responses)[:, None]
    answers = torch.where(valid, (places * 7 + torch.tensor(prompts)[:, None]) % 40 + 3, 0)
    return Batch(torch.cat([ids, answers], 1), mask, valid.float(), torch.zeros(valid.shape))


lengths = st.integers(min_value=1, max_value=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(lengths, lengths), min_size=1, max_size=12), st.integers(1, 200))
def test_each_row_is_in_one_micro_batch_within_the_budget_and_loses_no_token(
    rows: list[tuple[int, int]], budget: int
) -> None:
    batch = batch_of([p for p, _ in rows], [r for _, r in rows])
    parts = split(batch, torch.arange(len(rows)), budget)
    assert sorted(torch.cat([part.index for part in parts]).tolist()) == list(range(len(rows)))
    for part in parts:
        assert part.tokens <= budget or len(part.index) == 1
        assert part.batch.response_mask.sum() == batch.response_mask[part.index].sum()
        assert part.batch.prompt_mask.sum() == batch.prompt_mask[part.index].sum()


def gradient(model: Any, batch: Batch, budget: int, fault: str = "") -> tuple[float, Passes, torch.Tensor]:
    model.zero_grad()
    passes, value = Passes(1.0, AllRows(), budget, Faults(Fault(inject=fault))), []
    weights = list(model.parameters())

    def loss(current: torch.Tensor) -> torch.Tensor:
        value.append(masked_mean(current.square(), batch.response_mask))
        return value[-1]

    passes.backward(model, batch, loss, weights)
    return float(value[0].detach()), passes, torch.cat([weight.grad.flatten() for weight in weights])


def test_loss_and_gradient_are_those_of_the_whole_minibatch() -> None:
    model = models.build_tiny(SHAPE, CharacterTokenizer(), seed=1)
    batch = batch_of([3, 9, 5, 14, 2, 9], [4, 1, 12, 6, 6, 3])
    loss, _, whole = gradient(model, batch, 0)
    same, passes, parts = gradient(model, batch, 40)
    assert same == pytest.approx(loss, rel=1e-6)
    assert float((parts - whole).norm() / whole.norm()) < 1e-5
    found = passes.measure()
    assert found["microbatches"] > 2
    assert found["microbatch_tokens_max"] <= 40
    assert found["microbatch_grad_error"] < 1e-5
    _, broken, _ = gradient(model, batch, 40, "loss-microbatch-lost")
    assert broken.measure()["microbatch_grad_error"] > 1e-3


def test_a_run_with_a_budget_trains_as_one_without(tmp_path: Path) -> None:
    fixed = inside("grpo", tmp_path / "fixed", "task.ragged=true")
    budget = inside("grpo", tmp_path / "budget", "task.ragged=true", "dynamic_batching.train_mb_tokens=64")
    for tag in ("train/loss", "train/grad_norm", "train/weight_delta", "train/reward"):
        assert budget[tag] == pytest.approx(fixed[tag], rel=1e-3, abs=1e-6), tag
    assert min(budget["train/microbatches"].values()) > 1
