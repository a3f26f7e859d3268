"""``python -m proveout_cpu.verl.start ASSETS FAMILY SEED -- COMMAND...``: data and model if absent, then COMMAND.

ASSETS gets ``train.parquet`` and ``test.parquet`` as verl reads them and, unless FAMILY is ``-``, a tiny ``model`` of
that family. Steps of one run share it; each part is whole or absent. Where PROVEOUT_TINY_MODELS names a directory, the
model is kept there and copied the next time: making it costs more than ten seconds of imports and warm start.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout_cpu.tiny.sums import question

ROWS = {"train": 256, "test": 16}
WARM_STEPS = 60
KEPT = "PROVEOUT_TINY_MODELS"


def rows(split: str, seed: int) -> Iterator[dict[str, Any]]:
    """One-digit sums as verl's mathematics reward (verl/utils/reward_score/math_reward.py) scores them: 1 or 0."""
    draw = random.Random(f"{seed} {split}")  # noqa: S311 - not for secrets
    for index in range(ROWS[split]):
        first, second = draw.randint(0, 9), draw.randint(0, 9)
        yield {
            "data_source": "lighteval/MATH",
            "prompt": [{"role": "user", "content": question(first, second)}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(first + second)},
            "extra_info": {"split": split, "index": index},
        }


def prepare(assets: Path, family: str, seed: int) -> None:
    """Write what is not there yet."""
    import pyarrow
    import pyarrow.parquet

    assets.mkdir(parents=True, exist_ok=True)
    for split in ROWS:
        if not (file := assets / f"{split}.parquet").exists():
            fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows(split, seed))), fresh)
            fresh.replace(file)
    target = assets / "model"
    if family != "-" and not target.exists():
        fresh = target.with_name(f".model.{secrets.token_hex(4)}")
        _model(family, seed, fresh)
        fresh.rename(target)
        print(f"a tiny {family}, {WARM_STEPS} steps warm: {target}", flush=True)


def _model(family: str, seed: int, target: Path) -> None:
    """A copy of the model that is kept, else a new one, which is kept then where that can be done."""
    place = os.environ.get(KEPT, "")
    kept = Path(place) / f"{family}-{seed}-{WARM_STEPS}"
    if place and kept.is_dir():
        shutil.copytree(kept, target)
        return
    from proveout_cpu.tiny.model import write

    write(family, target, seed, WARM_STEPS)
    if place:
        fresh = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(OSError):
            shutil.copytree(target, fresh)
            fresh.rename(kept)


def main(words: list[str]) -> None:
    """Prepare, then become the command. Status 2 for words that are none."""
    if len(words) < 5 or words[3] != "--":
        sys.exit(f"usage: {__doc__}")
    assets, family, seed, _, *command = words
    prepare(Path(assets), family, int(seed))
    os.execvp(command[0], command)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main(sys.argv[1:])
