"""A transfer of weights is proved by what it really brought."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from proveout_cpu.refit import FILE, VARIABLE, RefitError, RefitLog, as_in_checkpoint  # noqa: E402


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path / FILE


def model() -> dict[str, Any]:
    embedding = torch.arange(6.0).reshape(2, 3)
    return {"embed": embedding, "norm": torch.ones(3), "head": embedding}


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_transfer_says_what_came_and_how_far_it_moved(evidence: Path) -> None:
    own = model()
    log = RefitLog(own, ["head"], "replica 0")
    log.take({"embed": own["embed"].clone(), "norm": torch.ones(3)}, 0)
    log.take({"embed": own["embed"] + 2, "norm": torch.ones(3)}, 1)
    log.take({"embed": own["embed"].clone(), "norm": torch.ones(3)}, 2)
    first, second, third = read(evidence)
    assert (first["version"], first["received"], first["change"], first["from_original"]) == (0, 2, 0.0, 0.0)
    assert second["change"] == pytest.approx(24**0.5)
    assert second["largest_change"] == second["largest_from_original"] == 2.0
    assert (third["change"], third["from_original"]) == (0.0, pytest.approx(24**0.5))
    assert first["checksum"] != second["checksum"] == third["checksum"]
    assert torch.equal(own["head"], torch.arange(6.0).reshape(2, 3) + 2)


def test_half_precision_is_compared_with_the_original_as_rounded(evidence: Path) -> None:
    own = {"w": torch.tensor([1.0001, 2.0])}
    RefitLog(own, [], "r").take({"w": own["w"].bfloat16()}, 0)
    assert read(evidence)[0]["from_original"] == 0.0


@pytest.mark.parametrize(
    ("received", "key", "names"),
    [
        ({"embed": torch.zeros(2, 3)}, "missing", ["norm"]),
        ({"embed": torch.zeros(2, 3), "norm": torch.ones(3), "bias": torch.ones(1)}, "extra", ["bias"]),
        ({"embed": torch.zeros(3, 2), "norm": torch.ones(3)}, "wrong_shape", ["embed"]),
    ],
)
def test_a_name_or_shape_that_is_not_the_models_is_written_and_raised(
    evidence: Path, received: dict[str, Any], key: str, names: list[str]
) -> None:
    with pytest.raises(RefitError):
        RefitLog(model(), ["head"], "r").take(received, 0)
    assert read(evidence)[0][key] == names


def test_not_finite_weights_are_seen(evidence: Path) -> None:
    own = {"w": torch.ones(2)}
    RefitLog(own, [], "r").take({"w": torch.tensor([float("nan"), 1.0])}, 0)
    proof = read(evidence)[0]
    assert all(proof[key] != proof[key] for key in ("change", "largest_change", "largest_from_original"))


def test_the_experts_of_a_model_have_the_names_and_weights_of_its_checkpoint(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    safetensors = pytest.importorskip("safetensors.torch")
    config = transformers.Qwen3MoeConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=32,
        moe_intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        num_experts=3,
        num_experts_per_tok=2,
        decoder_sparse_step=1,
        tie_word_embeddings=False,
    )
    model = transformers.Qwen3MoeForCausalLM(config)
    model.save_pretrained(tmp_path)
    saved = safetensors.load_file(str(tmp_path / "model.safetensors"))
    own = as_in_checkpoint(model.state_dict())
    assert own.keys() == saved.keys()
    assert all(torch.equal(own[name], saved[name]) for name in saved)
    own["model.layers.0.mlp.experts.2.up_proj.weight"].zero_()
    assert not model.model.layers[0].mlp.experts.gate_up_proj[2, 8:].any()
