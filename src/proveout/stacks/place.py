"""Where stacks are, and what is written down of an installed one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from proveout.assets.places import home
from proveout.domain.files import read_json, write_json

RECORD = "proveout-stack.json"
VARIABLE = "PROVEOUT_STACKS"


class Record(msgspec.Struct, kw_only=True):
    """The state of an environment: ``done`` are the steps of the lock that ended, ``begun`` the one that was
    running when this was written; ``verified`` the digest of the lock that was verified by import last."""

    name: str
    digest: str
    python: str
    done: tuple[str, ...] = ()
    begun: str = ""
    verified: str = ""
    checkouts: dict[str, str] = {}


class Place:
    """The directory of one stack, whether it is there or not."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.root = root / name
        self.python = self.root / "bin" / "python"
        self.log = self.root / "install.log"
        self.constraints = self.root / "constraints.txt"
        self.lock = root / f".{name}.lock"
        self._record = self.root / RECORD

    @property
    def ours(self) -> bool:
        """Whether proveout made this directory."""
        return self._record.is_file()

    @property
    def size(self) -> int:
        """Bytes on disk, links not followed."""
        found = (Path(at, file) for at, _, files in os.walk(self.root) for file in files)
        return sum(file.lstat().st_size for file in found)

    @property
    def record(self) -> Record:
        """What was written down. Raises UsageError where it cannot be read."""
        return read_json(self._record, Record)

    def write(self, record: Record) -> None:
        """Write the state down, whole or not at all."""
        write_json(self._record, record)


def root(env: Mapping[str, str], named: Path | None = None) -> Path:
    """Where stacks are kept: as named, else PROVEOUT_STACKS, else the user's cache (XDG_CACHE_HOME)."""
    if named:
        return named.absolute()
    if value := env.get(VARIABLE):
        return Path(value).expanduser().absolute()
    cache = env.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else home(env) / ".cache") / "proveout" / "stacks"


def installed(name: str, env: Mapping[str, str], named: Path | None = None) -> Place | None:
    """The stack of this name if it was installed to its end and verified."""
    place = Place(root(env, named), name)
    return place if place.ours and place.record.verified and place.python.exists() else None
