"""Overrides, values and model directories are checked before anything is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.runs import bench

from proveout_bench.config.model_dir import check_model_dir
from proveout_bench.config.overrides import apply, leaves
from proveout_bench.config.resolve import as_dict, resolve
from proveout_bench.config.schema import GrpoConfig
from proveout_bench.errors import ConfigError

KEYS = sorted(leaves(GrpoConfig))


def test_overrides_reach_nested_keys_and_the_last_one_wins() -> None:
    config = apply(
        GrpoConfig, ["rollout.group_size=4", "lr=0", "rollout.group_size=2", "rollout.ignore_eos=true"]
    )
    assert (config.rollout.group_size, config.lr, config.rollout.ignore_eos) == (2, 0.0, True)
    assert config.rollout.prompts == GrpoConfig().rollout.prompts


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("max_step=3", "max_steps"),
        ("rolout.group_size=3", "rollout.group_size"),
        ("group_size=3", "rollout.group_size"),
        ("optimizer.lr=0", "lr"),
        ("temprature=2", "rollout.temperature"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(word: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"nearest valid key: {nearest}$"):
        apply(GrpoConfig, [word])


@pytest.mark.parametrize(
    "word",
    [
        *(
            "max_steps=0",
            "max_steps=three",
            "max_steps=1.5",
            "lr=nan",
            "lr=inf",
            "lr=-1",
            "rollout.group_size=1",
        ),
        *(
            "rollout.ignore_eos=perhaps",
            "runtime.device=tpu",
            "max_steps",
            "rollout.temperature=0",
            "rollout=3",
        ),
        *("task.name=poems", "backend=jax", "rollout.engine=cloud", "loss.minibatch_size=5", "tiny.heads=3"),
        *("tiny.kv_heads=3", "output_dir="),
    ],
)
def test_a_bad_value_is_refused_and_its_key_is_named(word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve([word])
    assert word.partition("=")[0] in str(caught.value)


@given(st.sampled_from(KEYS), st.text(max_size=20))
def test_no_value_raises_anything_but_a_config_error(key: str, text: str) -> None:
    try:
        config = apply(GrpoConfig, [f"{key}={text}"])
    except ConfigError:
        return
    assert isinstance(config, GrpoConfig)


@given(st.text(max_size=30))
def test_no_word_raises_anything_but_a_config_error(word: str) -> None:
    try:
        apply(GrpoConfig, [word])
    except ConfigError:
        return
    assert word.partition("=")[0] in KEYS


@given(st.integers(1, 10**9), st.floats(0, 10, allow_nan=False))
def test_numbers_survive_the_way_through_text(steps: int, lr: float) -> None:
    config = apply(GrpoConfig, [f"max_steps={steps}", f"lr={lr!r}"])
    assert (config.max_steps, config.lr) == (steps, lr)


def test_check_prints_the_resolved_configuration_and_runs_nothing(tmp_path: Path) -> None:
    done = bench("grpo", "--check", f"output_dir={tmp_path / 'run'}", "lr=0.5")
    assert done.status == 0
    assert json.loads(done.out) == as_dict(resolve([f"output_dir={tmp_path / 'run'}", "lr=0.5"]))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("grpo", "--check", "max_step=3"), "nearest valid key: max_steps"),
        (("grpo", "max_step=3"), "nearest valid key: max_steps"),
        (("grpo", "--chek"), "--check"),
        (("grop",), "grpo"),
        (("grpo", "model=no/such/place"), "does not exist"),
    ],
)
def test_wrong_usage_is_status_2_with_one_message_and_no_traceback(
    words: tuple[str, ...], message: str
) -> None:
    done = bench(*words)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err + done.out


def test_neither_help_nor_check_imports_torch() -> None:
    script = (
        "import sys; from proveout_bench.cli import program\n"
        "for words in (['--help'], ['grpo', '--help'], ['grpo', '--check']): program(words, standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], check=False, stdout=subprocess.DEVNULL).returncode == 0
    )


def checkpoint(folder: Path) -> Path:
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_a_complete_checkpoint_directory_is_accepted(tmp_path: Path) -> None:
    check_model_dir(str(checkpoint(tmp_path)))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (checkpoint(tmp_path) / name).unlink()
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        check_model_dir(str(tmp_path))


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"config\.json is missing; weights are missing.*; tokenizer is missing"
    ):
        check_model_dir(str(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "{", '{"hidden_size": 3}'])
def test_a_config_that_is_no_model_config_is_refused(tmp_path: Path, content: str) -> None:
    (checkpoint(tmp_path) / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=r"config\.json"):
        check_model_dir(str(tmp_path))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ConfigError, match=r"shard model-2\.safetensors is missing$"):
        check_model_dir(str(tmp_path))


def test_an_output_directory_with_the_events_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").mkdir()
    resolve([f"output_dir={tmp_path}"])
    (tmp_path / "tensorboard" / "events.out.tfevents.1").touch()
    with pytest.raises(ConfigError, match="another run"):
        resolve([f"output_dir={tmp_path}"])
