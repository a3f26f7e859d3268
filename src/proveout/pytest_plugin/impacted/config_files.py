"""Files that no import reaches and that still decide how tests run: the table is ``config_files.json``."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec


class _Tables(msgspec.Struct, frozen=True):
    everything: tuple[str, ...]
    nothing: tuple[str, ...]


@cache
def _tables() -> _Tables:
    content = Path(__file__).with_name("config_files.json").read_bytes()
    return msgspec.json.decode(content, type=_Tables)


def affects_everything(path: str) -> bool:
    """Whether a change to the file may affect every test below its directory (configuration, lock files)."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(name, pattern) for pattern in _tables().everything)


def affects_nothing(path: str) -> bool:
    """Whether a file that nothing names is known to be for people only (prose, pictures, hosting)."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in _tables().nothing)
