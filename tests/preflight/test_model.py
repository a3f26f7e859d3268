"""Models and data: real safetensors shards, real tokenizers, real parquet files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.preflight.conftest import Find
from tests.preflight.steps import step, wrapper

from proveout.domain.finding import Severity
from proveout.domain.preflight import Worker
from proveout.domain.verdict import Verdict

NAME = "Some/Tiny-Model"
CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 4,
}


def snapshot(place: Path) -> Path:
    """A model directory as the hub serves it: configuration, real shards with their index, tokenizer."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models

    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(CONFIG))
    shards = {f"model-0000{n}-of-00002.safetensors": f"layer.{n}.weight" for n in (1, 2)}
    for shard, tensor in shards.items():
        save_file({tensor: np.zeros((4, 4), np.float32)}, place / shard)
    index = {"metadata": {}, "weight_map": {tensor: shard for shard, tensor in shards.items()}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")).save(str(place / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "a"}
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    return place


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return snapshot(tmp_path / "model")


def cached(hub: Path) -> Path:
    """The same in the layout of the hub's cache; files are links to blobs."""
    root = hub / f"models--{NAME.replace('/', '--')}"
    place = snapshot(root / "snapshots" / "abc123")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc123")
    (root / "blobs").mkdir()
    for number, file in enumerate(sorted(place.iterdir())):
        blob = root / "blobs" / f"blob{number}"
        file.rename(blob)
        file.symlink_to(Path("..") / ".." / "blobs" / blob.name)
    return place


def test_a_whole_snapshot_is_silent(find: Find, model: Path, tmp_path: Path) -> None:
    assert find("snapshot", model=str(model)) == ()
    cached(tmp_path / "hub")
    assert find("snapshot", model=NAME, env={"HF_HUB_CACHE": str(tmp_path / "hub")}) == ()


def test_a_missing_shard_blocks_and_is_named(find: Find, model: Path) -> None:
    shard = model / "model-00002-of-00002.safetensors"
    whole = shard.read_bytes()
    shard.unlink()
    (missing,) = find("snapshot", model=str(model))
    assert missing.decides is Verdict.BLOCKED and shard.name in missing.what
    shard.write_bytes(whole[:-10])
    (cut,) = find("snapshot", model=str(model))
    assert "damaged" in cut.what and f"{len(whole) - 10} bytes, its header promises {len(whole)}" in cut.what
    shard.write_bytes(b"")
    assert "empty" in find("snapshot", model=str(model))[0].what
    shard.write_bytes(whole)
    assert find("snapshot", model=str(model)) == ()


def test_a_link_into_the_cache_whose_blob_is_gone_blocks(find: Find, tmp_path: Path) -> None:
    place = cached(tmp_path / "hub")
    (place / "model-00001-of-00002.safetensors").resolve().unlink()
    (place.parents[1] / "blobs" / "blob9.incomplete").write_bytes(b"x")
    shard, unfinished = find("snapshot", model=NAME, env={"HF_HUB_CACHE": str(tmp_path / "hub")})
    assert "shard missing" in shard.what and "not finished" in unfinished.what


@pytest.mark.parametrize(
    ("file", "fault"),
    [("config.json", "config"), ("tokenizer.json", "tokenizer"), ("model.safetensors.index.json", "weights")],
)
def test_each_part_is_missed(find: Find, model: Path, file: str, fault: str) -> None:
    (model / file).unlink()
    (finding,) = find("snapshot", model=str(model))
    assert finding.id == f"preflight.snapshot.{fault}"


def test_damaged_json_is_a_finding(find: Find, model: Path) -> None:
    (model / "config.json").write_text("{")
    (model / "model.safetensors.index.json").write_text('{"weight_map": []}')
    assert [finding.id.rsplit(".", 1)[1] for finding in find("snapshot", model=str(model))] == [
        "config",
        "weights",
    ]


def test_a_model_that_is_not_here_warns_online_and_blocks_offline(find: Find, tmp_path: Path) -> None:
    env = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    (online,) = find("snapshot", model=NAME, env=env)
    assert online.severity is Severity.WARNING and "each worker would fetch it" in online.what
    assert find("snapshot", model=NAME, env={**env, "HF_HUB_OFFLINE": "1"})[0].decides is Verdict.BLOCKED
    assert find("snapshot", model=str(tmp_path / "no"), env=env)[0].decides is Verdict.BLOCKED


def test_a_gated_model_without_token_blocks(find: Find, tmp_path: Path, env: dict[str, str]) -> None:
    fields = {"model": "meta-llama/Llama-3.2-1B"}
    (finding,) = find("gated", **fields)
    assert finding.decides is Verdict.BLOCKED
    assert find("gated", model="Qwen/Qwen3-0.6B") == ()
    assert find("gated", env={"HF_TOKEN": "x"}, **fields) == ()
    stored = Path(env["HOME"]) / ".cache" / "huggingface"
    stored.mkdir(parents=True)
    (stored / "token").write_text("x")
    assert find("gated", **fields) == ()


def test_loading_is_tried_where_it_is_asked_for(find: Find, model: Path) -> None:
    """Slow: a real transformers loads configuration and tokenizer without the hub."""
    worker = (Worker(name="W", argv=(sys.executable,), loop="bench"),)
    fields = {"model": str(model), "workers": worker, "settings": {"model.load": "tokenizer"}}
    assert find("snapshot-loads", **fields) == ()
    (model / "config.json").write_text('{"model_type": "of-nobody"}')
    (model / "tokenizer.json").write_text("{}")
    config, tokenizer = find("snapshot-loads", **fields)
    assert config.id == "preflight.snapshot-loads.config" and config.decides is Verdict.BLOCKED
    assert tokenizer.id == "preflight.snapshot-loads.tokenizer"
    assert find("snapshot-loads", **{**fields, "settings": {}}) == ()


def test_verls_reward_model_is_there_or_off(find: Find, model: Path, tmp_path: Path) -> None:
    (absent,) = find("reward-model", steps=wrapper())
    assert absent.decides is Verdict.BLOCKED and "Skywork" in absent.what
    assert find("reward-model", steps=wrapper(RM_MODEL_PATH=str(model))) == ()
    assert find("reward-model", steps=wrapper("reward.reward_model.enable=False")) == ()
    assert find("reward-model", steps=step("verl", "python3", "-m", "verl.trainer.main_ppo")) == ()
    both = (*wrapper("reward.reward_model.enable=False"), *wrapper())
    assert len(find("reward-model", steps=both)) == 1


ROW = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "user", "content": "1+1?"}],
    "ability": "math",
    "reward_model": {"style": "rule", "ground_truth": "2"},
    "extra_info": {"split": "train", "index": 0},
}


def parquet(file: Path, rows: list[dict[str, object]]) -> str:
    pa.parquet.write_table(pa.Table.from_pylist(rows), file)
    return str(file)


def test_the_schema_of_verls_data_is_read(find: Find, tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet", [ROW])
    assert find("gsm8k", steps=wrapper(TRAIN_FILES=good, VAL_FILES=good)) == ()

    raw = parquet(tmp_path / "raw.parquet", [{"question": "1+1?", "answer": "#### 2"}])
    (wrong,) = find("gsm8k", steps=wrapper(TRAIN_FILES=raw, VAL_FILES=good))
    assert wrong.decides is Verdict.BLOCKED and wrong.where.key == "TRAIN_FILES"
    assert "no column prompt" in wrong.what and "no column reward_model" in wrong.what

    text = parquet(tmp_path / "text.parquet", [{**ROW, "prompt": "1+1?", "reward_model": {"style": "rule"}}])
    (shape,) = find("gsm8k", steps=wrapper(TRAIN_FILES=good, VAL_FILES=text))
    assert "not a list of {role, content}" in shape.what and "no ground_truth" in shape.what

    (tmp_path / "torn.parquet").write_bytes(Path(good).read_bytes()[:-20])
    (torn,) = find("gsm8k", steps=wrapper(TRAIN_FILES=str(tmp_path / "torn.parquet"), VAL_FILES=good))
    assert "cannot be read" in torn.what

    own = parquet(tmp_path / "own.parquet", [{**ROW, "data_source": "toy"}])
    (source,) = find("gsm8k", steps=wrapper(TRAIN_FILES=own, VAL_FILES=good))
    assert source.severity is Severity.NOTICE


def test_absent_data_blocks_and_overrides_are_read(find: Find, tmp_path: Path) -> None:
    train, val = find("gsm8k", loops=("verl",))
    assert train.decides is val.decides is Verdict.BLOCKED and "proveout data" in train.remedy
    good = parquet(tmp_path / "good.parquet", [ROW])
    direct = ("verl", "python3", "-m", "verl.trainer.main_ppo")
    there = step(*direct, f"data.train_files={good}", f"data.val_files=['{good}']")
    assert find("gsm8k", steps=there, loops=()) == ()
    gone = step(*direct, f"data.train_files={tmp_path / 'gone.parquet'}")
    assert [finding.where.key for finding in find("gsm8k", steps=gone, loops=())] == ["data.train_files"]
