"""Adapters: what is trained, what generation gets, what is exported; and the defects of each."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.bench.runs import inside

from proveout_bench import models
from proveout_bench.backends.hf import HfBackend
from proveout_bench.batch import Batch
from proveout_bench.config.resolve import resolve
from proveout_bench.errors import ConfigError
from proveout_bench.tokenizer import CharacterTokenizer

pytestmark = pytest.mark.real
LORA = ("lora.rank=2", "lr=0.01")


def backend(*words: str) -> tuple[HfBackend, torch.nn.Module]:
    """An adapted policy that has taken two updates, and the model that it started from."""
    config = resolve([*LORA, *words])
    model = models.build_tiny(config.tiny, CharacterTokenizer(), 0)
    policy = HfBackend(config, model)
    for _ in range(2):
        policy.update(batch(), lambda current: -current.mean())
    return policy, model


def batch() -> Batch:
    ids = torch.arange(24).view(2, 12)
    return Batch(ids, torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 8), torch.zeros(2, 8))


def test_only_the_adapters_are_trained() -> None:
    policy, model = backend("lora.targets=q_proj", "lora.rank=3", "tiny.layers=2")
    assert policy.trainable_parameters() == 2 * 3 * (64 + 64)
    before = models.build_tiny(resolve([]).tiny, CharacterTokenizer(), 0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before.parameters(), strict=True))


def test_the_reference_is_the_base_and_stays_it() -> None:
    policy, model = backend()
    fresh = HfBackend(resolve([]), model)
    assert torch.equal(policy.reference_logprobs(batch()), fresh.logprobs(batch()))
    assert (policy.logprobs(batch()) - policy.reference_logprobs(batch())).abs().max() > 1e-3


def test_generation_gets_weights_that_compute_what_the_adapted_policy_computes() -> None:
    policy, model = backend()
    sent = dict(policy.weights())
    assert sent.keys() == dict(model.named_parameters()).keys()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(sent[name])
    merged = HfBackend(resolve([]), model).logprobs(batch())
    torch.testing.assert_close(merged, policy.logprobs(batch()), atol=1e-5, rtol=0)
    measured = policy.measure()
    assert measured["lora/effect_norm"] == pytest.approx(measured["lora/delivered_norm"], rel=1e-5) != 0
    assert measured["lora/undelivered_norm"] < 1e-5


def test_targets_that_match_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"lora\.targets=nothing"):
        backend("lora.targets=nothing")


def test_the_export_loads_and_computes_the_same_merged_and_as_an_adapter(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    series = inside("grpo", tmp_path / "run", *LORA, f"export={tmp_path / 'out'}")
    assert 0 <= series["export/logprob_error"][2] < 1e-5
    assert 0 <= series["export/adapter_logprob_error"][2] < 1e-5
    AutoModelForCausalLM.from_pretrained(str(tmp_path / "out"), local_files_only=True)
    again = inside("grpo", tmp_path / "again", f"model={tmp_path / 'out'}", "max_steps=1")
    assert again["train/token_mult_prob_error"][1] < 1.0001
    with pytest.raises(ConfigError, match="export"):
        resolve([f"export={tmp_path / 'out'}"])


def test_an_export_without_the_adapter_shows(tmp_path: Path) -> None:
    words = (*LORA, f"export={tmp_path / 'out'}", "fault.adapter_exported_without_effect=true")
    series = inside("grpo", tmp_path / "run", *words)
    assert series["export/logprob_error"][2] > 1e-3 > 1e-5 > series["export/adapter_logprob_error"][2]


def test_an_adapter_that_is_not_delivered_shows_in_two_places(tmp_path: Path) -> None:
    series = inside("grpo", tmp_path / "run", *LORA, "fault.adapter_not_delivered=true", "max_steps=3")
    assert series["train/token_mult_prob_error"][3] > 1.0001
    assert max(series["train/lora/delivered_norm"].values()) == 0
    assert series["train/lora/undelivered_norm"][3] > 1e-3


def test_a_frozen_adapter_gets_no_gradient_and_does_not_move(tmp_path: Path) -> None:
    series = inside("grpo", tmp_path / "run", *LORA, "fault.adapter_frozen=true")
    assert set(series["train/grad_norm"].values()) == set(series["train/weight_delta"].values()) == {0.0}


def test_gradients_that_are_not_cleared_pile_up() -> None:
    norms = {}
    for fault in ("false", "true"):
        policy, _ = backend("lr=0", "optimizer.max_grad_norm=1000", f"fault.no_zero_grad={fault}")
        norms[fault] = policy.update(batch(), lambda current: -current.mean()).grad_norm
    assert norms["true"] == pytest.approx(3 * norms["false"], rel=1e-4)


def test_turned_advantages_and_constant_rewards_are_what_they_are_named_for(tmp_path: Path) -> None:
    sound = inside("grpo", tmp_path / "sound")
    turned = inside("grpo", tmp_path / "turned", "fault.advantage_sign=true")
    assert turned["train/advantages/max"][1] == -sound["train/advantages/min"][1]
    constant = inside("grpo", tmp_path / "constant", "fault.constant_reward=true")
    assert constant["train/zero_advantage_share"] == {1: 1.0, 2: 1.0}
    assert constant["train/reward"] == {1: 0.5, 2: 0.5}
