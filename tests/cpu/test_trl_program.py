"""The program that drives TRL: its settings, rewards and rows, without TRL."""

from __future__ import annotations

from pathlib import Path

import pytest

from proveout_cpu.trl.rewards import answer, digits
from proveout_cpu.trl.settings import SettingError, read


@pytest.mark.parametrize(
    ("algorithm", "words", "said"),
    [
        ("grpo", ["output_dir=x", "max_step=3"], "did you mean 'max_steps'?"),
        ("grpo", ["output_dir=x", "max_steps=many"], "'many' is no int"),
        ("grpo", ["max_steps=3"], "output_dir must be given"),
        ("grpo", ["output_dir=x", "batch=12", "group=8"], "no multiple of group=8"),
        ("ppo", ["output_dir=x"], "no algorithm 'ppo'"),
        ("sft", ["output_dir=x", "model=/nowhere"], "no config.json there"),
        ("sft", ["output_dir=x", "data=/nowhere.jsonl"], "no such file"),
        ("sft", ["output_dir=x", "max_steps=0"], "at least 1"),
    ],
)
def test_wrong_settings_are_named(algorithm: str, words: list[str], said: str) -> None:
    with pytest.raises(SettingError, match=said.replace("?", r"\?")):
        read(algorithm, words)


def test_the_last_word_counts_and_the_settings_are_written(tmp_path: Path) -> None:
    settings = read("sft", [f"output_dir={tmp_path}", "lr=1", "lr=0.5", "seed=3"])
    settings.write()
    assert settings.lr == 0.5 and '"seed": 3' in (tmp_path / "config.json").read_text()


def test_rewards() -> None:
    chat = [[{"role": "assistant", "content": "a1"}], [{"role": "assistant", "content": ""}]]
    assert digits(chat) == [0.5, 0.0] and digits(["12", "x"]) == [1.0, 0.0]
    assert answer(["so \\boxed{7}", "\\boxed{8}"], answer=["7", "7"]) == [1.0, 0.0]
