"""Rows of grade-school mathematics in the shape that verl reads, from raw files or made up."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proveout.assets.files import new_file
from proveout.domain.errors import BlockedError, UsageError

SOURCE = "openai/gsm8k"
SPLITS = ("train", "test")
INSTRUCTION = 'Work it out in small steps and put the final number after "####".'
SCRIPT = "examples/data_preprocess/gsm8k.py"
_ANSWER = re.compile(r"#### (-?[0-9.,]+)")


def pyarrow() -> Any:
    """The parquet library. Raises BlockedError that says how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BlockedError(
            "pyarrow is not installed, and parquet files need it",
            remedy="python -m pip install 'proveout[data]'",
        ) from None
    return pyarrow


def instruction_of(checkout: str | None) -> str:
    """The sentence that verl's own script appends to a question, read from a checkout; else our own."""
    if not checkout:
        return INSTRUCTION
    file = Path(checkout) / SCRIPT
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file), remedy="name a verl checkout") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "instruction_following" in names:
                return str(node.value.value)
    raise UsageError("no instruction_following in it", where=str(file), remedy="leave --verl out")


def row(question: str, answer: str, split: str, index: int, instruction: str) -> dict[str, Any]:
    """One row as verl reads it. Raises ValueError where the answer does not end in ``#### NUMBER``."""
    found = _ANSWER.search(answer)
    if not found:
        raise ValueError("the answer has no '#### NUMBER'")
    return {
        "data_source": SOURCE,
        "prompt": [{"role": "user", "content": f"{question} {instruction}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": found[1].replace(",", "")},
        "extra_info": {"split": split, "index": index, "answer": answer, "question": question},
    }


def raw_file(source: Path, split: str) -> Path:
    """The raw file of a split: JSON lines or parquet, named after it, in ``source`` or its ``main`` directory."""
    for place in (source, source / "main"):
        for pattern in (f"{split}.jsonl", f"{split}-*.parquet", f"{split}.parquet"):
            found = sorted(place.glob(pattern))
            if found:
                return found[0]
    raise UsageError(
        f"no raw file of the {split} split",
        where=str(source),
        remedy=f"put {split}.jsonl (a question and an answer a line) or {split}-*.parquet there",
    )


def read_raw(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each record of a raw file with the place where it stands."""
    if file.suffix == ".parquet":
        try:
            table = pyarrow().parquet.read_table(file)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot be read: {error}", where=str(file), remedy="fetch it again") from None
        for number, record in enumerate(table.to_pylist()):
            yield f"{file}, row {number}", record
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise UsageError(f"not JSON: {error}", where=f"{file}:{number}", remedy="fix it") from None
            yield f"{file}:{number}", record


def rows_of(file: Path, split: str, instruction: str) -> list[dict[str, Any]]:
    """All rows of a raw file. Raises UsageError that names the record that is not as it should be."""
    rows = []
    for index, (where, record) in enumerate(read_raw(file)):
        remedy = "correct the record, or take it out of the raw file"
        try:
            question, answer = record["question"], record["answer"]
            rows.append(row(str(question), str(answer), split, index, instruction))
        except (KeyError, TypeError):
            raise UsageError("no question and answer", where=where, remedy=remedy) from None
        except ValueError as error:
            raise UsageError(str(error), where=where, remedy=remedy) from None
    if not rows:
        raise UsageError("no rows", where=str(file), remedy="fetch the raw file again")
    return rows


def toy(split: str, count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` rows of one-step arithmetic with small numbers, the same for the same seed."""
    draw = random.Random(f"{seed} {split}")  # noqa: S311 - not for secrets
    rows = []
    for index in range(count):
        first, second, more = draw.randint(2, 20), draw.randint(1, 20), draw.random() < 0.5
        result = first + second if more else first * second
        question = f"A box holds {first} pens. " + (
            f"{second} more are put in. How many are there now?"
            if more
            else f"How many pens do {second} such boxes hold?"
        )
        sign = "+" if more else "*"
        answer = f"{first} {sign} {second} = {result}\n#### {result}"
        rows.append(row(question, answer, split, index, INSTRUCTION))
    return rows


def write(file: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows as parquet, whole or not at all; the number of rows."""
    arrow = pyarrow()
    table = arrow.Table.from_pylist(list(rows))
    with new_file(file) as place:
        arrow.parquet.write_table(table, place)
    return int(table.num_rows)
