"""Sampling with a cache agrees with the policy's own forward pass; padding, end tokens and refit are honest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from proveout_bench import models
from proveout_bench.backends.hf import HfBackend
from proveout_bench.batch import Batch, pad_left
from proveout_bench.config.schema import GrpoConfig, Optimizer, Rollout, TinyModel
from proveout_bench.errors import ConfigError
from proveout_bench.forward import response_logprobs
from proveout_bench.generation.inprocess import InProcessGenerator
from proveout_bench.metrics import formulas
from proveout_bench.tokenizer import CharacterTokenizer

TOKENIZER = CharacterTokenizer()
EQUAL = ["digits: ", "answer: "] * 8
RAGGED = ["1+1=", "12+7=", "sum of 3, 4 and 5: ", "x"] * 4


@pytest.fixture
def model() -> Any:
    return models.build_tiny(TinyModel(init_std=0.2), TOKENIZER, seed=3)


def sample(model: Any, prompts: list[str], **settings: Any) -> Batch:
    rollout = Rollout(max_new_tokens=24, **settings)
    return InProcessGenerator(rollout, model, TOKENIZER, seed=1).generate(
        [TOKENIZER.encode(p) for p in prompts]
    )


@pytest.mark.parametrize("prompts", [EQUAL, RAGGED])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 1.7])
def test_generation_logprobs_equal_the_policys(model: Any, prompts: list[str], temperature: float) -> None:
    batch = sample(model, prompts, temperature=temperature)
    with torch.no_grad():
        again = response_logprobs(model, batch, temperature) * batch.response_mask
    assert torch.allclose(again, batch.generation_logprobs, atol=2e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_logprobs_are_those_of_each_sequence_alone_without_padding(model: Any, temperature: float) -> None:
    batch = sample(model, RAGGED, temperature=temperature)
    for row, prompt in enumerate(RAGGED):
        length = int(batch.response_mask[row].sum())
        ids = torch.cat([torch.tensor(TOKENIZER.encode(prompt)), batch.responses()[row, :length]])
        with torch.no_grad():
            logits = model(input_ids=ids[None]).logits[0, -length - 1 : -1]
        alone = torch.log_softmax(logits / temperature, -1)[torch.arange(length), ids[-length:]]
        assert torch.allclose(alone, batch.generation_logprobs[row, :length], atol=2e-5)


def test_a_response_counts_up_to_and_with_its_end_token(model: Any) -> None:
    batch = sample(model, EQUAL * 4)
    lengths = batch.response_mask.sum(1).long()
    ended = [row for row in range(len(lengths)) if lengths[row] < batch.response_mask.shape[1]]
    assert ended, "this seed must sample an end token somewhere"
    for row, length in enumerate(lengths.tolist()):
        tokens = batch.responses()[row].tolist()
        assert TOKENIZER.eos_ids[0] not in tokens[: length - 1]
        assert set(tokens[length:]) <= {TOKENIZER.pad_id}
        assert batch.response_mask[row].tolist() == [1.0] * length + [0.0] * (len(tokens) - length)
    assert all(batch.responses()[row, lengths[row] - 1] == TOKENIZER.eos_ids[0] for row in ended)


def test_ignore_eos_samples_every_token(model: Any) -> None:
    batch = sample(model, EQUAL * 4, ignore_eos=True)
    assert batch.response_mask.shape == (64, 24)
    assert bool(batch.response_mask.all())


def test_sampling_repeats_with_the_seed(model: Any) -> None:
    assert torch.equal(sample(model, RAGGED).input_ids, sample(model, RAGGED).input_ids)


def test_low_temperature_picks_the_most_likely_token(model: Any) -> None:
    batch = sample(model, EQUAL, temperature=1e-4)
    with torch.no_grad():
        logits = model(input_ids=batch.input_ids).logits[:, batch.prompt_length - 1 : -1]
    picked = (logits.argmax(-1) == batch.responses())[batch.response_mask > 0]
    assert bool(picked.all())


def error_after_update(model: Any, refit: bool) -> float:
    config = GrpoConfig(lr=0.05)
    generator = InProcessGenerator(config.rollout, model, TOKENIZER, seed=1)
    backend = HfBackend(config, model)
    prompts = [TOKENIZER.encode(prompt) for prompt in EQUAL]
    assert backend.update(generator.generate(prompts), lambda logprobs: logprobs.mean()).applied
    if refit:
        generator.load_weights(backend.weights())
    batch = generator.generate(prompts)
    return formulas.token_mult_prob_error(
        batch.generation_logprobs, backend.logprobs(batch), batch.response_mask
    )


def test_a_refit_that_does_not_happen_shows(model: Any) -> None:
    assert error_after_update(model, refit=False) > 1.05


def test_a_refit_reports_what_a_validation_before_it_already_brought(model: Any) -> None:
    generator = InProcessGenerator(Rollout(), model, TOKENIZER, seed=1)
    moved = [(name, weight + 0.5) for name, weight in model.named_parameters()]
    generator.load_weights(moved)
    generator.load_weights(moved)
    assert generator.refit().metrics["delta/changed_pct"] == 100.0
    generator.load_weights(moved)
    assert generator.refit().metrics["delta/changed_pct"] == 0.0


def test_a_refit_delivers_every_weight(model: Any) -> None:
    assert error_after_update(model, refit=True) < 1.0001


def test_the_reference_policy_stays_as_it_was(model: Any) -> None:
    config = GrpoConfig(lr=0.05)
    backend = HfBackend(config, model)
    batch = sample(model, EQUAL)
    before = backend.logprobs(batch)
    backend.mark()
    backend.update(batch, lambda logprobs: logprobs.mean())
    assert torch.equal(backend.reference_logprobs(batch), before)
    assert not torch.allclose(backend.logprobs(batch), before)
    assert backend.moved() > 0


def test_a_gradient_that_is_not_finite_changes_nothing(model: Any) -> None:
    backend = HfBackend(GrpoConfig(lr=0.05), model)
    batch = sample(model, EQUAL)
    backend.mark()
    update = backend.update(batch, lambda logprobs: logprobs.mean() * float("nan"))
    assert not update.applied
    assert backend.moved() == 0


def test_warm_up_reaches_the_configured_rate(model: Any) -> None:
    config = GrpoConfig(lr=0.04, optimizer=Optimizer(warmup_steps=3))
    backend, batch = HfBackend(config, model), sample(model, EQUAL)
    rates = [backend.update(batch, lambda logprobs: logprobs.mean()).lr for _ in range(5)]
    assert rates == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.04])


def test_left_padding_keeps_the_tokens_at_the_right_edge() -> None:
    ids, mask = pad_left([[5, 6, 7], [8]], pad_id=0)
    assert ids.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert mask.tolist() == [[True] * 3, [False, False, True]]


def test_the_tiny_model_is_drawn_from_its_seed_alone() -> None:
    torch.manual_seed(11)
    one = models.build_tiny(TinyModel(), TOKENIZER, seed=4)
    torch.manual_seed(12)
    two, other = (models.build_tiny(TinyModel(), TOKENIZER, seed=seed) for seed in (4, 5))
    weights = [torch.cat([w.flatten() for w in m.parameters()]) for m in (one, two, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert 80_000 < len(weights[0]) < 800_000


def test_a_checkpoint_with_broken_weights_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
    (tmp_path / "model.safetensors").write_text("no")
    with pytest.raises(ConfigError, match="does not load"):
        models.load(GrpoConfig(model=str(tmp_path)))
