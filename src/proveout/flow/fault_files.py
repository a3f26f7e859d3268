"""Files that some faults need before their run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from proveout.domain.errors import BlockedError

TINY_SECONDS = 120.0


def prepare(name: str, folder: Path, python: str) -> None:
    """Make what the fault named ``name`` needs in ``folder``; nothing for ''. BlockedError where that fails."""
    match name:
        case "missing-shard":
            _missing_shard(folder / "model", python)
        case "shadow":
            (folder / "shadow" / "torch").mkdir(parents=True)
            (folder / "shadow" / "torch" / "__init__.py").write_text("", encoding="utf-8")


def _missing_shard(model: Path, python: str) -> None:
    """A checkpoint in two shards of which only the first is there, as an interrupted download leaves it."""
    made = subprocess.run(
        [python, "-m", "proveout_bench", "init-model", str(model)],
        capture_output=True,
        text=True,
        timeout=TINY_SECONDS,
        check=False,
    )
    if made.returncode:
        raise BlockedError(f"the tiny model cannot be made: {made.stderr.strip()}", where=str(model))
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    shards = {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}
    shards["model.norm.weight"] = "model-00002-of-00002.safetensors"
    index = json.dumps({"metadata": {}, "weight_map": shards})
    (model / "model.safetensors.index.json").write_text(index, encoding="utf-8")
