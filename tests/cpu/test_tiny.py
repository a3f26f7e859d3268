"""Tiny models of real families, and the toy data that the loops read, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer

CHAT = [{"role": "user", "content": "What is 3+4?"}]


def loaded(place: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(place), AutoTokenizer.from_pretrained(place)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("qwen2", "Qwen2"), ("qwen3", "Qwen3"), ("llama", "Llama"), ("qwen3-moe", "Qwen3Moe")],
)
def test_a_family_loads_with_a_tokenizer_that_knows_the_chat(
    proveout: Callable[..., Answer], tmp_path: Path, family: str, kind: str
) -> None:
    made = proveout("model", "tiny", "--family", family, "-o", "model", "num_hidden_layers=1")
    assert made.status == 0, made.err
    model, tokenizer = loaded(tmp_path / "model")
    assert type(model).__name__ == f"{kind}ForCausalLM" and model.config.num_hidden_layers == 1
    text = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    assert text.endswith("<|im_start|>assistant\n")
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text and max(ids) < model.config.vocab_size
    assert tokenizer.convert_ids_to_tokens(ids).count("<|im_end|>") == 1
    assert model.config.eos_token_id == tokenizer.eos_token_id == model.generation_config.eos_token_id


def test_the_splitting_that_transformers_gives_qwen_changes_no_token(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    proveout("model", "tiny", "--family", "qwen2", "-o", "model", "num_hidden_layers=1")
    by_type = AutoTokenizer.from_pretrained(tmp_path / "model")
    by_file = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "model" / "tokenizer.json"))
    for text in ("What is 3+14? Answer: \\boxed{17}", "You are a helpful assistant.\n\n#### 12  x"):
        assert by_type(text)["input_ids"] == by_file(text)["input_ids"]


def test_a_warm_start_makes_answers_likelier_and_a_seed_makes_the_same_weights(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    import torch

    for name, words in (("cold", ()), ("warm", ("--warm", "12")), ("again", ("--warm", "12"))):
        proveout("model", "tiny", "--family", "qwen2", "-o", name, *words, "num_hidden_layers=1")
    losses = {}
    for name in ("cold", "warm"):
        model, tokenizer = loaded(tmp_path / name)
        text = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
        ids = torch.tensor([tokenizer(text + "\\boxed{7}<|im_end|>")["input_ids"]])
        losses[name] = model(input_ids=ids, labels=ids).loss.item()
    assert losses["warm"] < losses["cold"] - 0.3
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("warm", "again")]
    assert weights[0] == weights[1]


def test_wrong_words_are_named(proveout: Callable[..., Answer]) -> None:
    wrong = proveout("model", "tiny", "--family", "llama", "-o", "model", "hiden_size=64")
    assert wrong.status == 2 and "did you mean 'hidden_size'?" in wrong.err
    wrong = proveout("model", "tiny", "--family", "llama", "-o", "model", "hidden_size=wide")
    assert wrong.status == 2 and "'wide' is no JSON value" in wrong.err
    wrong = proveout("model", "tiny", "-o", "model", "--warm", "3")
    assert wrong.status == 2 and "for --family" in wrong.err
    assert proveout("model", "tiny", "--family", "lama", "-o", "model").status == 2


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_toy_data_has_the_columns_of_each_loop_and_true_answers(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    for loop in ("nemo-rl", "trl"):
        assert proveout("data", "toy", "--for", loop, "-o", loop, "--rows", "40").status == 0
    responses = rows(tmp_path / "nemo-rl" / "train.jsonl")
    assert len(responses) == 40 and len(rows(tmp_path / "nemo-rl" / "test.jsonl")) == 10
    for row in responses:
        first, _, second = row["input"].removeprefix("What is ").removesuffix("?").partition("+")
        assert int(first) + int(second) == int(row["output"])
    for row in rows(tmp_path / "trl" / "train.jsonl"):
        assert row["chosen"] == row["completion"] != row["rejected"]
        assert row["completion"][0]["content"] == f"\\boxed{{{row['answer']}}}"
        assert row["prompt"][0]["role"] == "user"


def test_sums_for_verl_are_what_its_reward_looks_for(proveout: Callable[..., Answer], tmp_path: Path) -> None:
    import pyarrow.parquet

    assert proveout("data", "toy", "--sums", "-o", "verl", "--rows", "8").status == 0
    table = pyarrow.parquet.read_table(tmp_path / "verl" / "train.parquet").to_pylist()
    assert len(table) == 8
    for row in table:
        first, _, second = row["extra_info"]["question"].removeprefix("What is ").rstrip("?").partition("+")
        assert row["reward_model"]["ground_truth"] == str(int(first) + int(second))
