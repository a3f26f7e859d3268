"""Rule rewards and the built-in tokenizer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proveout_bench.config.schema import Task
from proveout_bench.registry import TASKS, load
from proveout_bench.tasks.base import Prompt
from proveout_bench.tokenizer import CHARACTERS, CharacterTokenizer, CheckpointTokenizer
from proveout_bench.vision import IMAGE


@pytest.mark.parametrize(
    ("text", "reward"), [("12a4", 0.75), ("", 0.0), ("abc", 0.0), ("7", 1.0), ("²٣1", 1 / 3)]
)
def test_digits_reward_is_the_share_of_ascii_digits(text: str, reward: float) -> None:
    assert load(TASKS, "digits")(Task()).reward(Prompt("p"), text) == pytest.approx(reward)


@pytest.mark.parametrize(
    ("text", "reward"),
    [("12", 1.0), (" 012.", 1.0), ("12 13", 1.0), ("13 12", 0.0), ("-12", 0.0), ("", 0.0), ("ab", 0.0)],
)
def test_arithmetic_compares_the_first_integer(text: str, reward: float) -> None:
    assert load(TASKS, "arithmetic")(Task()).reward(Prompt("5+7=", "12"), text) == reward


def test_arithmetic_prompts_carry_their_sum_within_range() -> None:
    for prompt in load(TASKS, "arithmetic")(Task(max_operand=30)).prompts(random.Random(1), 50):
        left, right = (int(part) for part in prompt.text.rstrip("=").split("+"))
        assert 0 <= min(left, right) <= max(left, right) <= 30
        assert int(prompt.answer) == left + right


@pytest.mark.parametrize("name", sorted(TASKS))
def test_prompts_repeat_with_the_seed_and_fit_the_alphabet(name: str) -> None:
    task, tokenizer = load(TASKS, name)(Task()), CharacterTokenizer()
    one, two, other = (task.prompts(random.Random(seed), 20) for seed in (5, 5, 6))
    assert one == two != other
    texts = [prompt.text.replace(IMAGE, "") for prompt in one]
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)


def test_a_character_outside_the_alphabet_becomes_unknown_and_vanishes() -> None:
    tokenizer = CharacterTokenizer()
    assert tokenizer.encode("a~") == [*tokenizer.encode("a"), 2]
    assert tokenizer.decode(tokenizer.encode("a~")) == "a"


def test_transformers_reads_the_saved_tokenizer_as_it_was(tmp_path: Path) -> None:
    own = CharacterTokenizer()
    own.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
    loaded = CheckpointTokenizer(str(tmp_path))
    assert (loaded.eos_ids, loaded.pad_id, len(loaded)) == (own.eos_ids, own.pad_id, len(own))
    for text in ("digits after 42: ", "12+30=", " a  b ", CHARACTERS):
        assert loaded.encode(text) == own.encode(text)
        assert loaded.decode(own.encode(text)) == text


@given(st.text(alphabet=CHARACTERS, max_size=40))
def test_text_survives_the_tokenizer_one_token_a_character(text: str) -> None:
    tokenizer = CharacterTokenizer()
    ids = tokenizer.encode(text)
    assert tokenizer.decode([*ids, tokenizer.eos_ids[0], tokenizer.pad_id]) == text
    assert len(ids) == len(text)
