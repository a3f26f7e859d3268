"""``proveout data``: what it writes is read back with the parquet library, and by the preflight check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.assets.conftest import Run

from proveout.domain.preflight import PreflightContext
from proveout.preflight import examine

RAW = [
    {"question": "A hen lays 2 eggs a day. In 3 days?", "answer": "2 * 3 = <<2*3=6>>6\n#### 6"},
    {"question": "How far?", "answer": "It is far.\n#### -1,200.5"},
]


def raw(place: Path, rows: list[dict[str, str]] = RAW) -> Path:
    place.mkdir(exist_ok=True)
    for split in ("train", "test"):
        (place / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def rows(file: Path) -> list[dict[str, object]]:
    return pyarrow.parquet.read_table(file).to_pylist()


def checked(place: Path) -> tuple[object, ...]:
    """What preflight says of the files that were written."""
    env = {"TRAIN_FILES": str(place / "train.parquet"), "VAL_FILES": str(place / "test.parquet")}
    (result,) = examine(PreflightContext(run_dir=".", loops=("verl",), env=env), only=["gsm8k"])
    return result.findings


def test_gsm8k_from_json_lines(proveout: Run, tmp_path: Path) -> None:
    done = proveout("data", "gsm8k", "--from", raw(tmp_path / "raw"), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    first, second = rows(tmp_path / "out" / "train.parquet")
    assert first["data_source"] == "openai/gsm8k" and first["ability"] == "math"
    assert first["reward_model"] == {"style": "rule", "ground_truth": "6"}
    assert second["reward_model"]["ground_truth"] == "-1200.5"
    (turn,) = first["prompt"]
    assert turn["role"] == "user" and turn["content"].startswith(RAW[0]["question"] + " ")
    assert first["extra_info"] == {"split": "train", "index": 0, **RAW[0]}
    assert rows(tmp_path / "out" / "test.parquet")[1]["extra_info"]["split"] == "test"
    assert checked(tmp_path / "out") == ()


def test_gsm8k_from_parquet_in_the_layout_of_the_hub(proveout: Run, tmp_path: Path) -> None:
    main = tmp_path / "hub" / "main"
    main.mkdir(parents=True)
    for split in ("train", "test"):
        table = pyarrow.Table.from_pylist(RAW)
        pyarrow.parquet.write_table(table, main / f"{split}-00000-of-00001.parquet")
    assert proveout("data", "gsm8k", "--from", tmp_path / "hub", "-o", tmp_path / "out").returncode == 0
    assert len(rows(tmp_path / "out" / "test.parquet")) == 2


def test_the_instruction_is_that_of_the_checkout(proveout: Run, tmp_path: Path) -> None:
    script = tmp_path / "verl" / "examples" / "data_preprocess" / "gsm8k.py"
    script.parent.mkdir(parents=True)
    script.write_text("import nowhere\nif True:\n    instruction_following = 'Say it after ####.'\n")
    words = ("data", "gsm8k", "--from", raw(tmp_path / "raw"), "-o", tmp_path / "out")
    assert proveout(*words, VERL_REPO=str(tmp_path / "verl")).returncode == 0
    (turn,) = rows(tmp_path / "out" / "train.parquet")[0]["prompt"]
    assert turn["content"] == RAW[0]["question"] + " Say it after ####."


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "train.jsonl:3: not JSON"),
        ('{"question": "x"}', "train.jsonl:3: no question and answer"),
        ('["x"]', "train.jsonl:3: no question and answer"),
        ('{"question": "x", "answer": "seven"}', "train.jsonl:3: the answer has no '#### NUMBER'"),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_written(
    proveout: Run, tmp_path: Path, line: str, says: str
) -> None:
    place = raw(tmp_path / "raw")
    with (place / "train.jsonl").open("a") as file:
        file.write(line + "\n")
    done = proveout("data", "gsm8k", "--from", place, "-o", tmp_path / "out")
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_split_and_an_empty_one_are_named(proveout: Run, tmp_path: Path) -> None:
    place = raw(tmp_path / "raw")
    (place / "test.jsonl").write_text("\n")
    done = proveout("data", "gsm8k", "--from", place, "-o", tmp_path / "out")
    assert done.returncode == 2 and "test.jsonl: no rows" in done.stderr
    (place / "test.jsonl").unlink()
    assert "no raw file of the test split" in proveout("data", "gsm8k", "--from", place, "-o", "x").stderr


def test_without_pyarrow_the_error_names_the_extra(proveout: Run, tmp_path: Path) -> None:
    hidden = tmp_path / "hide" / "pyarrow"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('not for this test')\n")
    import os

    path = f"{hidden.parent}:{os.environ.get('PYTHONPATH', '')}"
    done = proveout("data", "toy", "-o", tmp_path / "out", PYTHONPATH=path)
    assert done.returncode == 3 and "proveout[data]" in done.stderr


def test_the_toy_set_is_valid_right_and_repeats(proveout: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert proveout("data", "toy", "--rows", "40", "-o", tmp_path / name).returncode == 0
    assert checked(tmp_path / "one") == ()
    train, test = (rows(tmp_path / "one" / f"{split}.parquet") for split in ("train", "test"))
    assert (len(train), len(test)) == (40, 10) and train == rows(tmp_path / "two" / "train.parquet")
    assert [row["prompt"] for row in train[:10]] != [row["prompt"] for row in test]
    for row in train:
        first, sign, second = re.match(r"(\d+) ([+*]) (\d+) = ", row["extra_info"]["answer"]).groups()
        right = int(first) + int(second) if sign == "+" else int(first) * int(second)
        assert row["reward_model"]["ground_truth"] == str(right)
        question = row["extra_info"]["question"]
        assert set(re.findall(r"\d+", question)) == {first, second}
        assert ("put in" in question) == (sign == "+")


def test_an_output_that_cannot_be_written_is_said(proveout: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = proveout("data", "toy", "-o", tmp_path / "file" / "out")
    assert done.returncode == 3 and "cannot be written" in done.stderr and "Traceback" not in done.stderr
