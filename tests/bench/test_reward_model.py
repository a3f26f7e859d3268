"""The reward model: what it prefers is known, and its scores are the rewards of the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.runs import inside

from proveout_bench.config.schema import Fault, GrpoConfig, Reward
from proveout_bench.errors import ConfigError
from proveout_bench.rewards.model import ModelReward, build
from proveout_bench.tasks.base import Prompt
from proveout_bench.tasks.digits import DigitsTask
from proveout_bench.tokenizer import CharacterTokenizer

TOKENIZER = CharacterTokenizer()
ANSWERS = ["abcdef", "abc1ef", "1b2d3f", "123456"]
PROMPT = Prompt("digits: ")


def scored(fault: str = "", folder: str = "") -> tuple[list[float], dict[str, float]]:
    config = GrpoConfig(reward=Reward(kind="model", model=folder), fault=Fault(inject=fault))
    reward = ModelReward(config, DigitsTask(config.task), TOKENIZER)
    return reward.score([PROMPT] * len(ANSWERS), ANSWERS), reward.measure()


def test_the_score_is_the_share_of_digits_in_prompt_and_answer() -> None:
    found, measured = scored()
    length = len(PROMPT.text) + 6
    assert found == pytest.approx([count / length for count in (0, 1, 3, 6)], abs=0.01)
    assert measured["reward_model/preference"] > 0.3
    assert measured["reward_model/agreement"] > 0.99
    assert measured["reward_model/score_max"] == pytest.approx(max(found))


def test_padding_changes_no_score() -> None:
    alone, _ = scored()
    config = GrpoConfig(reward=Reward(kind="model"))
    padded = ModelReward(config, DigitsTask(config.task), TOKENIZER)
    assert padded.score([PROMPT] * 5, [*ANSWERS, "12" * 20])[:4] == pytest.approx(alone, abs=1e-6)


def test_a_score_that_is_turned_round_shows_in_the_known_preference() -> None:
    _, measured = scored("reward-model-sign")
    assert measured["reward_model/preference"] < -0.3
    assert measured["reward_model/agreement"] < -0.99


def test_a_directory_is_loaded_and_one_that_is_none_refused(tmp_path: Path) -> None:
    build(TOKENIZER).save_pretrained(tmp_path / "model")
    assert scored(folder=str(tmp_path / "model"))[0] == pytest.approx(scored()[0], abs=1e-6)
    with pytest.raises(ConfigError, match=r"reward\.model"):
        scored(folder=str(tmp_path / "nothing"))


def test_its_scores_are_the_rewards_of_a_run(tmp_path: Path) -> None:
    found = inside("grpo", tmp_path, "reward.kind=model")
    assert found["train/reward"] == pytest.approx(found["train/reward_model/score_mean"])
    assert min(found["train/reward_model/agreement"].values()) > 0.5
