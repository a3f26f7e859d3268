"""``python -m proveout_cpu.verl.start ASSETS FAMILY SEED -- COMMAND...``: data and model if absent, then COMMAND.

ASSETS gets ``train.parquet`` and ``test.parquet`` as verl reads them and, unless FAMILY is ``-``, a tiny ``model`` of
that family. Steps of one run share it; each part is whole or absent.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout_cpu.tiny.sums import question

ROWS = {"train": 256, "test": 16}
WARM_STEPS = 60


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
        from proveout_cpu.tiny.model import write

        fresh = target.with_name(f".model.{secrets.token_hex(4)}")
        count = write(family, fresh, seed, WARM_STEPS)
        fresh.rename(target)
        print(f"a tiny {family} of {count:,} parameters, {WARM_STEPS} steps warm: {target}", flush=True)


def main(words: list[str]) -> None:
    """Prepare, then become the command. Status 2 for words that are none."""
    if len(words) < 5 or words[3] != "--":
        sys.exit(f"usage: {__doc__}")
    assets, family, seed, _, *command = words
    prepare(Path(assets), family, int(seed))
    os.execvp(command[0], command)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main(sys.argv[1:])
