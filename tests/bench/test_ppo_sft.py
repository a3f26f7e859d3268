"""The critic and its advantages against hand computations; demonstrations and their order."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.runs import inside

from proveout_bench import models
from proveout_bench.algorithms.ppo.critic import Critic, value_loss
from proveout_bench.algorithms.ppo.gae import advantages_and_returns, terminal_rewards, whiten
from proveout_bench.algorithms.sft.data import Demonstrations, as_batch
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import Task
from proveout_bench.errors import ConfigError
from proveout_bench.tasks.arithmetic import ArithmeticTask
from proveout_bench.tasks.digits import DigitsTask
from proveout_bench.tokenizer import CharacterTokenizer

MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def test_the_reward_stands_on_the_last_valid_token() -> None:
    assert terminal_rewards(torch.tensor([2.0, 3.0]), MASK).tolist() == [[0, 0, 2], [3, 0, 0]]


@given(
    st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3),
    st.floats(0, 1, width=32),
    st.floats(0, 1, width=32),
)
def test_advantages_are_the_discounted_sum_of_the_errors(
    values: list[float], gamma: float, lam: float
) -> None:
    rewards = torch.tensor([[0.0, 0.0, 1.0]])
    found, returns = advantages_and_returns(rewards, torch.tensor([values]), MASK[:1], gamma, lam)
    after = [*values[1:], 0.0]
    errors = [r + gamma * n - v for r, n, v in zip([0.0, 0.0, 1.0], after, values, strict=True)]
    expected = [sum((gamma * lam) ** (k - t) * errors[k] for k in range(t, 3)) for t in range(3)]
    assert found[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert returns[0].tolist() == pytest.approx(
        [a + v for a, v in zip(expected, values, strict=True)], abs=1e-5
    )


def test_what_stands_on_padding_never_counts() -> None:
    values = torch.tensor([[0.5, 9.0, -9.0]])
    found, returns = advantages_and_returns(torch.tensor([[1.0, 0.0, 0.0]]), values, MASK[1:], 1.0, 0.95)
    assert found.tolist() == [[0.5, 0.0, 0.0]]
    assert returns.tolist() == [[1.0, 0.0, 0.0]]


def test_whitened_advantages_have_mean_0_and_deviation_1_over_valid_tokens() -> None:
    found = whiten(torch.tensor([[1.0, 2.0, 6.0], [3.0, 100.0, 100.0]]), MASK)
    valid = found[MASK > 0]
    assert float(valid.mean()) == pytest.approx(0, abs=1e-6)
    assert float(valid.std(correction=0)) == pytest.approx(1, abs=1e-5)
    assert found[MASK == 0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("value", "old", "target", "loss"),
    [(0.1, 0.0, 1.0, 0.405), (0.9, 0.0, 1.0, 0.32), (-0.9, 0.0, 1.0, 1.805)],
)
def test_the_value_loss_takes_the_worse_of_the_clipped_and_the_plain_error(
    value: float, old: float, target: float, loss: float
) -> None:
    parts = [torch.tensor([[number, 77.0]]) for number in (value, old, target)]
    assert float(value_loss(*parts, torch.tensor([[1.0, 0.0]]), clip=0.2)) == pytest.approx(loss)


def test_a_critic_begins_at_0_and_learns_a_return() -> None:
    config = resolve(["critic.lr=0.003", "critic.epochs=30", "critic.clip=10"], "ppo")
    tokenizer = CharacterTokenizer()
    critic = Critic(config, models.build_tiny(config.tiny, tokenizer, 0))
    task = ArithmeticTask(Task())
    data = Demonstrations(task, 16, 16, seed=0)
    batch = as_batch(data.next(), tokenizer, "cpu")
    old = critic.values(batch)
    assert set(old.flatten().tolist()) == {0.0}
    returns = 0.7 * batch.response_mask
    critic.update(batch, old, returns)
    assert (critic.values(batch) - returns).abs().max() < 0.1


@pytest.mark.parametrize("task", [ArithmeticTask(Task()), DigitsTask(Task())])
def test_a_demonstration_earns_the_whole_reward(task: ArithmeticTask | DigitsTask) -> None:
    for prompt, answer in Demonstrations(task, 50, 50, seed=3).next():
        assert answer
        assert task.reward(prompt, answer) == 1.0


@given(st.integers(1, 12), st.integers(0, 99), st.integers(0, 30))
def test_each_epoch_holds_each_demonstration_once_also_after_a_resume(size: int, seed: int, cut: int) -> None:
    data = Demonstrations(ArithmeticTask(Task(max_operand=99)), 12, size, seed)
    batches = 12 // size
    for _ in range(cut):
        data.next()
    again = Demonstrations(ArithmeticTask(Task(max_operand=99)), 12, size, seed)
    again.load_state_dict(data.state_dict())
    for _ in range(-cut % batches):
        assert data.next() == again.next()
    epoch = [id(pair) for _ in range(batches) for pair in data.next()]
    assert len(set(epoch)) == batches * size


def test_padding_is_left_of_prompts_and_right_of_answers() -> None:
    tokenizer = CharacterTokenizer()
    pairs = [(p, t) for p, t in Demonstrations(ArithmeticTask(Task(max_operand=50)), 8, 8, 1).next()]
    batch = as_batch(pairs, tokenizer, "cpu")
    for row, (prompt, answer) in enumerate(pairs):
        ids = batch.input_ids[row]
        valid = [*batch.prompt_mask[row].tolist(), *(batch.response_mask[row] > 0).tolist()]
        kept = [int(token) for token, counts in zip(ids, valid, strict=True) if counts]
        assert kept == [*tokenizer.encode(prompt.text), *tokenizer.encode(answer), tokenizer.eos_ids[0]]


@pytest.mark.real
def test_sft_learns_its_demonstrations_and_validates_at_its_cadence(tmp_path: Path) -> None:
    words = ("max_steps=30", "validation.every=20", "lr=0.01", "task.max_operand=3", "sft.examples=16")
    series = inside("sft", tmp_path / "run", *words)
    assert series["train/loss"][30] < 0.5 * series["train/loss"][1]
    assert set(series["validation/accuracy"]) == set(series["validation/val_loss"]) == {20, 30}
    assert series["validation/val_loss"][30] < 3.0


@pytest.mark.real
def test_validation_changes_nothing_of_the_training(tmp_path: Path) -> None:
    plain = inside("ppo", tmp_path / "plain")
    watched = inside("ppo", tmp_path / "watched", "validation.every=1", "fault.constant_reward=false")
    assert {tag: points for tag, points in watched.items() if tag.startswith("train/")} == plain
    assert {"train/critic/loss", "train/critic/grad_norm", "train/critic/weight_delta"} <= plain.keys()


@pytest.mark.parametrize(
    "word", ["sft.batch_size=65", "rollout.temperature=2", "loss.kl_beta=0", "critic.lr=1"]
)
def test_sft_refuses_what_it_cannot_use(word: str) -> None:
    with pytest.raises(ConfigError, match=word.partition("=")[0].replace(".", r"\.")):
        resolve([word], "sft")
