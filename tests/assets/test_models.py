"""``proveout model``: looked at, fetched from a hub on this machine, and made with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import safe_open
from tests.assets.conftest import Run
from tests.assets.hub import Hub
from tests.preflight.test_model import snapshot

from proveout_bench import dummy_model

NAME = "Some/Tiny-Model"
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(NAME, snapshot(tmp_path / "served"))


def test_a_model_is_fetched_once_and_whole(proveout: Run, hub: Hub, tmp_path: Path) -> None:
    with hub.running():
        words = ("model", "fetch", NAME, "--to", tmp_path / "here", "--json")
        done = proveout(*words, HF_ENDPOINT=hub.url)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["problems"] == []
        got = {file.name: file.read_bytes() for file in (tmp_path / "here").iterdir() if file.is_file()}
        assert got == {file.name: file.read_bytes() for file in hub.files.iterdir()}
        hub.served.clear()
        assert proveout(*words, HF_ENDPOINT=hub.url).returncode == 0
        assert hub.served == []
    assert proveout("model", "snapshot", "path", tmp_path / "here").stdout.strip() == str(tmp_path / "here")


def test_a_fetch_that_broke_off_goes_on_with_what_is_left(proveout: Run, hub: Hub, tmp_path: Path) -> None:
    words = ("model", "fetch", NAME, "--to", tmp_path / "here")
    with hub.running():
        hub.cut.add(SHARD)
        broken = proveout(*words, HF_ENDPOINT=hub.url)
        assert broken.returncode == 3 and "goes on where this one stopped" in broken.stderr
        assert "Traceback" not in broken.stderr
        assert proveout("model", "snapshot", "check", tmp_path / "here").returncode == 3
        hub.cut.clear()
        before = {file.name for file in (tmp_path / "here").iterdir()}
        hub.served.clear()
        assert proveout(*words, HF_ENDPOINT=hub.url).returncode == 0
        assert SHARD in hub.served and not before & set(hub.served)


def test_refusals_of_the_hub_are_told_apart(proveout: Run, hub: Hub, tmp_path: Path) -> None:
    words = ("model", "fetch", NAME, "--to", tmp_path / "here")
    with hub.running():
        for status, says in ((403, "is gated"), (404, "knows no")):
            hub.status = status
            done = proveout(*words, HF_ENDPOINT=hub.url)
            assert done.returncode == 3 and says in done.stderr and "Traceback" not in done.stderr
    gone = proveout(*words, HF_ENDPOINT=hub.url)
    assert gone.returncode == 3 and "was not fetched" in gone.stderr


def test_a_model_without_weights_is_not_called_fetched(proveout: Run, hub: Hub, tmp_path: Path) -> None:
    (hub.files / SHARD).unlink()
    with hub.running():
        done = proveout("model", "fetch", NAME, "--to", tmp_path / "here", HF_ENDPOINT=hub.url)
    assert done.returncode == 3 and f"shard missing: {SHARD}" in done.stderr


def test_offline_is_said_before_anything_is_asked(proveout: Run, hub: Hub, tmp_path: Path) -> None:
    with hub.running():
        env = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "1"}
        done = proveout("model", "fetch", NAME, "--to", tmp_path / "here", **env)
    assert done.returncode == 3 and "HF_HUB_OFFLINE says offline" in done.stderr
    assert not (tmp_path / "here").exists()
    assert proveout("model", "fetch", "no-slash", "--to", tmp_path).returncode == 2


def test_check_names_what_is_missing(proveout: Run, tmp_path: Path) -> None:
    place = snapshot(tmp_path / "model")
    assert proveout("model", "snapshot", "check", place).returncode == 0
    (place / SHARD).unlink()
    done = proveout("model", "snapshot", "check", place)
    assert done.returncode == 3 and SHARD in done.stdout
    refused = proveout("model", "snapshot", "path", place)
    assert refused.returncode == 3 and refused.stdout == "" and SHARD in refused.stderr
    assert proveout("model", "snapshot", "check", "Some/Where-Else").returncode == 3


QWEN = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "layer_types": ["full_attention", "full_attention"],
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 300,
}


def tensors(place: Path) -> dict[str, object]:
    with safe_open(place / "model.safetensors", "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary


@pytest.mark.real
def test_a_dummy_model_has_the_shape_of_its_configuration(proveout: Run, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    out = tmp_path / "dummy"
    words = ("model", "dummy", tmp_path / "config.json", "-o", out, "--set", "num_hidden_layers=1")
    done = proveout(*words)
    assert done.returncode == 0, done.stderr
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors(out).items()}
    assert shapes["model.embed_tokens.weight"] == (300, 16)
    assert shapes["model.layers.0.mlp.up_proj.weight"] == (32, 16)
    assert not any("layers.1" in name for name in shapes)
    tokenizer = AutoTokenizer.from_pretrained(out, local_files_only=True)
    text = "2 + 2 = 4, né?"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert max(tokenizer.encode(text)) < 300 and tokenizer.eos_token_id == 257
    assert json.loads((out / "config.json").read_text())["eos_token_id"] == 257
    again = proveout(*words)
    assert again.returncode == 2 and "exists already" in again.stderr


@pytest.mark.real
def test_the_tokenizer_beside_the_configuration_is_taken_along(tmp_path: Path) -> None:
    source = snapshot(tmp_path / "source")
    assert dummy_model.main([str(source / "config.json"), str(tmp_path / "dummy")]) == 0
    assert (tmp_path / "dummy" / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("config", "words", "says"),
    [
        ("{", (), "cannot be read"),
        ("[]", (), "not a model configuration"),
        (json.dumps(QWEN), ("--set", "num_hidden_layer=1"), "did you mean 'num_hidden_layers'"),
    ],
)
def test_a_wrong_configuration_is_named_and_leaves_nothing(
    proveout: Run, tmp_path: Path, config: str, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "config.json").write_text(config)
    done = proveout("model", "dummy", tmp_path / "config.json", "-o", tmp_path / "out", *words)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.json", "home"]


@pytest.mark.real
def test_configurations_that_make_no_model_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        ({**QWEN, "model_type": "of-nobody"}, "does not take this configuration"),
        ({**QWEN, "vocab_size": 100}, "too small for a tokenizer"),
        (
            {**QWEN, "hidden_size": 65536, "num_hidden_layers": 2, "intermediate_size": 65536},
            "make it smaller",
        ),
    ]
    for number, (config, says) in enumerate(cases):
        (tmp_path / f"{number}.json").write_text(json.dumps(config))
        assert dummy_model.main([str(tmp_path / f"{number}.json"), str(tmp_path / "out")]) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.real
def test_the_tiny_model_is_whole_and_its_settings_count(proveout: Run, tmp_path: Path) -> None:
    done = proveout("model", "tiny", "-o", tmp_path / "tiny", "tiny.layers=1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problems"] == []
    layers = {name.split(".")[2] for name in tensors(tmp_path / "tiny") if ".layers." in name}
    assert layers == {"0"}


def test_an_interpreter_without_torch_is_said(proveout: Run, tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    done = proveout("model", "tiny", "-o", tmp_path / "out", "--python", python)
    assert done.returncode == 3 and "Traceback" not in done.stderr and not (tmp_path / "out").exists()
