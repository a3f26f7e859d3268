"""Where checkpoints lie, by file names and JSON alone. Nothing here imports torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import ConfigError

TRACKER = "latest_checkpointed_iteration.txt"
MANIFEST = "checkpoint.json"
NEVER, AUTO = "never", "auto"


def folder_of(config: RunConfig) -> Path:
    """The directory that holds this run's checkpoints."""
    return Path(config.checkpoint.dir or Path(config.output_dir) / "checkpoints")


def step_folder(root: Path, step: int) -> Path:
    """The directory of the checkpoint after ``step``."""
    return root / f"step_{step}"


def check_resume(config: RunConfig) -> None:
    """Raise ConfigError where ``resume`` names no checkpoint, or ``auto`` finds a broken one."""
    find(config)


def find(config: RunConfig) -> Path | None:
    """The checkpoint to go on from; None for ``never``, and for ``auto`` where nothing was saved yet.

    Raises ConfigError that names what is missing.
    """
    if config.resume == NEVER:
        return None
    if config.resume == AUTO:
        root = folder_of(config)
        return _newest(root, "resume=auto") if (root / TRACKER).exists() else None
    given, key = Path(config.resume), f"resume={config.resume}"
    if (given / TRACKER).exists():
        return _newest(given, key)
    if not (given / MANIFEST).is_file():
        what = "holds no checkpoint" if given.exists() else "does not exist"
        raise ConfigError(
            f"{key}: {what} (no {MANIFEST} and no {TRACKER}); write never, auto, or the directory of a checkpoint"
        )
    return given


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint. Raises ConfigError where it cannot be read."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(content["step"], int) and isinstance(content["files"], dict):
            return dict(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder / MANIFEST}: cannot be read as a checkpoint manifest: {error}") from None
    raise ConfigError(f"{folder / MANIFEST}: step or files are missing")


def _newest(root: Path, key: str) -> Path:
    text = (root / TRACKER).read_text(encoding="utf-8").strip()
    folder = step_folder(root, int(text)) if text.isdecimal() else None
    if folder is None or not (folder / MANIFEST).is_file():
        raise ConfigError(f"{key}: {root / TRACKER} says {text!r}, and no such checkpoint is there")
    return folder
