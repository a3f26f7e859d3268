"""Finds the files that a path, a directory or a glob stands for."""

from __future__ import annotations

import fnmatch
import glob
import os
from pathlib import Path

_IGNORED = (".profile-empty", ".tmp", ".part")


def find(base: Path, where: str, pattern: str) -> list[Path]:
    """The files at ``where`` below ``base`` (a file, a directory to search, or a glob of either), by name."""
    path = base / where
    named = [str(path)] if path.exists() else glob.glob(str(path), recursive=True)  # noqa: PTH207
    files: dict[Path, None] = {}
    for match in map(Path, sorted(named)):
        if match.is_dir():
            files.update(dict.fromkeys(below(match, pattern)))
        elif match.is_file():
            files[match] = None
    return list(files)


def below(directory: Path, pattern: str) -> list[Path]:
    """The files of this name pattern in a directory and all below it, links followed once, sorted."""
    seen: set[str] = set()
    found: list[Path] = []
    for root, directories, names in os.walk(directory, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:
            directories.clear()
            continue
        seen.add(real)
        found.extend(
            Path(root, name)
            for name in names
            if fnmatch.fnmatch(name, pattern) and not name.endswith(_IGNORED) and Path(root, name).is_file()
        )
    return sorted(found)
