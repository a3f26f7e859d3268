"""Rollouts one step ahead: which weights sampled, how old they are, and what corrects for it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from tests.bench.runs import SMALL, Finished, inside

from proveout_bench import registry
from proveout_bench.algorithms.grpo import oracle
from proveout_bench.algorithms.grpo.loss import LossInputs, grpo_loss
from proveout_bench.algorithms.rollouts import StaleRolloutError
from proveout_bench.config.resolve import resolve
from proveout_bench.config.schema import Loss
from proveout_bench.errors import ConfigError

AHEAD = (
    *("rollout.engine=process", "rollout.lag=1", "loss.importance_correction=true"),
    *("max_steps=4", "lr=0.01", "loss.minibatch_size=4"),
)


def test_samples_are_one_update_old_by_the_version_that_generation_reports(tmp_path: Path) -> None:
    found = inside("grpo", tmp_path, *AHEAD)
    assert found["train/rollout/lag_max"] == {1: 0, 2: 1, 3: 1, 4: 1}
    assert found["train/rollout/version_min"] == {1: 1, 2: 1, 3: 2, 4: 3}
    assert max(found["train/rollout/behaviour_mult_prob_error"].values()) < 1.0001
    errors = found["train/token_mult_prob_error"]
    assert errors[1] < 1.0001
    assert min(errors[step] for step in (2, 3, 4)) > 1.0001
    assert max(found["train/loss_error_max"].values()) < 1e-5
    assert max(found["train/importance_weight_max"].values()) > 1


def test_validation_in_between_does_not_disturb_what_is_under_way(tmp_path: Path) -> None:
    plain = inside("grpo", tmp_path / "plain", *AHEAD)
    validated = inside("grpo", tmp_path / "validated", *AHEAD, "validation.every=1", "validation.prompts=2")
    assert validated["train/loss"] == pytest.approx(plain["train/loss"], rel=1e-5)
    assert validated["train/rollout/lag_max"] == plain["train/rollout/lag_max"]


def test_samples_older_than_the_lag_end_the_run(tmp_path: Path) -> None:
    words = [*SMALL, *AHEAD, "fault.inject=rollout-too-old", f"output_dir={tmp_path}"]
    with pytest.raises(StaleRolloutError, match="step 3: samples of weights 2 updates old"):
        registry.load(registry.ALGORITHMS, "grpo")(resolve(words))


def test_weights_that_are_confirmed_and_not_applied_show_against_their_version(tmp_path: Path) -> None:
    words = [*SMALL, *AHEAD, "fault.inject=refit-stale-silent", f"output_dir={tmp_path}"]
    registry.load(registry.ALGORITHMS, "grpo")(resolve(words))
    found = Finished(0, "", "", tmp_path).series()
    assert max(found["train/rollout/behaviour_mult_prob_error"].values()) > 1.0001


def test_importance_correction_weighs_by_the_sampling_weights_up_to_the_cap() -> None:
    config = Loss(kl_beta=0.0, importance_correction=True, importance_cap=2.0)
    one = torch.ones(1, 3)
    generation = torch.tensor([[-1.0, -1.0 - math.log(1.5), -4.0]])
    inputs = LossInputs(one, -one, -one, generation, one)
    loss, metrics = grpo_loss(-one, inputs, config)
    assert float(loss) == pytest.approx(-(1.0 + 1.5 + 2.0) / 3)
    assert metrics["importance_weight_max"] == pytest.approx(2.0)
    assert oracle.loss(-one, inputs, config) == pytest.approx(float(loss), rel=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rollout.lag=1"], "rollout.engine=process"),
        (["rollout.lag=1", "rollout.engine=process", "checkpoint.every=1"], "would not be in it"),
        (["rollout.lag=1", "rollout.engine=process", "runtime.ranks=2"], "several ranks"),
        (["rollout.lag=1", "rollout.engine=process", "task.name=dialogue"], "single turns"),
    ],
)
def test_what_cannot_run_ahead_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve([*words, f"output_dir={tmp_path / 'out'}"])
