"""Rollouts of two turns: what stands where, and that the environment's tokens never enter the loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bench.runs import inside

from proveout_bench import models
from proveout_bench.algorithms.grpo.loss import LossInputs, grpo_loss
from proveout_bench.algorithms.turns import check, converse
from proveout_bench.batch import Batch
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import Fault, Loss, Rollout, Task, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.faults import Faults
from proveout_bench.forward import response_logprobs
from proveout_bench.generation.inprocess import InProcessGenerator
from proveout_bench.tasks.base import Prompt
from proveout_bench.tasks.dialogue import DialogueTask
from proveout_bench.tokenizer import CharacterTokenizer

TOKENIZER, LONGEST = CharacterTokenizer(), 12
TASK = DialogueTask(Task(name="dialogue"))
PROMPTS = [Prompt(f"digits after {number}: ") for number in (7, 12, 345, 99)] * 4


@pytest.fixture(scope="module")
def model() -> Any:
    return models.build_tiny(TinyModel(init_std=0.3), TOKENIZER, seed=3)


@pytest.fixture(scope="module")
def talked(model: Any) -> tuple[Batch, list[str]]:
    sampler = InProcessGenerator(Rollout(max_new_tokens=LONGEST), model, TOKENIZER, seed=5)
    return converse(sampler.generate, TASK, TOKENIZER, PROMPTS)


def test_a_row_is_prompt_answer_reply_answer_and_logprobs_are_the_policys(
    model: Any, talked: tuple[Batch, list[str]]
) -> None:
    batch, answers = talked
    with torch.no_grad():
        again = response_logprobs(model, batch, 1.0) * batch.response_mask
    assert torch.allclose(again, batch.generation_logprobs, atol=2e-5)
    for row, prompt in enumerate(PROMPTS):
        text = TOKENIZER.decode(batch.input_ids[row].tolist())
        assert text.startswith(prompt.text)
        first, reply, last = text.removeprefix(prompt.text).partition(" of ")
        assert reply
        assert last.endswith(f". again: {answers[row]}")
        assert first.split(" ")[-1].isdigit()


def test_the_mask_leaves_out_the_reply_and_nothing_else(talked: tuple[Batch, list[str]]) -> None:
    batch, _ = talked
    found = check(batch, PROMPTS, TASK, TOKENIZER, LONGEST)
    assert found["environment_tokens"] > len(PROMPTS) * len(" 0 of 0. again: ") - 1
    assert (found["mask_error"], found["environment_tokens_in_loss"]) == (0, 0)
    counted = Faults(Fault(inject="loss-environment-tokens")).counted(batch)
    wrong = check(counted, PROMPTS, TASK, TOKENIZER, LONGEST)
    assert wrong["environment_tokens_in_loss"] == found["environment_tokens"]
    assert wrong["mask_error"] >= found["environment_tokens"]
    shifted = replace(batch, response_mask=batch.response_mask.roll(1, dims=1))
    assert check(shifted, PROMPTS, TASK, TOKENIZER, LONGEST)["mask_error"] > 0


def test_no_gradient_comes_from_the_environments_tokens(talked: tuple[Batch, list[str]]) -> None:
    batch, _ = talked
    mask = batch.response_mask
    current = batch.generation_logprobs.clone().requires_grad_()
    ones = torch.ones_like(mask)
    inputs = LossInputs(ones, batch.generation_logprobs, ones * -2, batch.generation_logprobs, mask)
    loss, _ = grpo_loss(current, inputs, Loss())
    loss.backward()
    assert current.grad is not None
    assert bool((current.grad[mask == 0] == 0).all())
    assert bool((current.grad[mask > 0] != 0).all())
    spoiled = replace(inputs, advantages=torch.where(mask > 0, ones, 1e6))
    assert float(grpo_loss(current, spoiled, Loss())[0].detach()) == pytest.approx(float(loss.detach()))


def test_a_run_of_two_turns_rewards_the_second_answer(tmp_path: Path) -> None:
    found = inside("grpo", tmp_path, "task.name=dialogue")
    assert max(found["train/environment_tokens_in_loss"].values()) == 0
    assert min(found["train/environment_tokens"].values()) > 0
    assert max(found["train/mask_error"].values()) == 0
    assert max(found["train/token_mult_prob_error"].values()) < 1.0001


def test_only_grpo_takes_dialogues(tmp_path: Path) -> None:
    for algorithm in ("ppo", "sft"):
        with pytest.raises(ConfigError, match="dialogue"):
            resolve(["task.name=dialogue", f"output_dir={tmp_path / 'out'}"], algorithm)
