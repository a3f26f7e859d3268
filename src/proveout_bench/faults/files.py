"""Faults of what lies on disk after a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path


def spoil(name: str, folder: Path) -> None:
    """Damage the checkpoint in ``folder`` as ``name`` says; nothing for other names."""
    match name:
        case "checkpoint-partial":
            _part(folder, "optimizer.pt").unlink()
        case "checkpoint-truncated":
            file = _part(folder, "policy.pt")
            os.truncate(file, file.stat().st_size // 2)
        case "checkpoint-old-tracker":
            _rename_to_an_older_step(folder)


def _part(folder: Path, name: str) -> Path:
    """The file, or the largest of Megatron's shards where the checkpoint is its own."""
    shards = (folder / "policy").glob("*.distcp")
    return max(shards, key=lambda one: one.stat().st_size, default=folder / name)


def _rename_to_an_older_step(folder: Path) -> None:
    """What was saved after one step is taken for what was saved after another: its step number is one too large."""
    import json

    manifest = folder / "checkpoint.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["step"] += 1
    manifest.write_text(json.dumps(content), encoding="utf-8")
