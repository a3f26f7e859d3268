"""What was read from YAML, kept as MessagePack: reading hundreds of rules takes longer than triage of a small log.

Kept in the user's cache directory under a name made of the files' paths, sizes and times. A cache that cannot be
written or read is simply not used.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def cached(kind: str, files: Sequence[Path], read: Callable[[Sequence[Path]], T], form: type[T]) -> T:
    """What ``read(files)`` gives, from the cache where none of the files changed."""
    key = hashlib.sha256()
    for file in files:
        state = file.stat()
        key.update(f"{file}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "proveout" / f"triage-{kind}-{key.hexdigest()[:24]}.msgpack"
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=form)
    except (OSError, msgspec.MsgspecError):
        fresh = read(files)
        _write(path, kind, fresh)
        return fresh


def read_yaml(files: Sequence[Path]) -> dict[str, Any]:
    """The one YAML file of a data table."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: dict[str, Any] = yaml.load(files[0].read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - safe
    return data


def _write(path: Path, kind: str, data: object) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(msgspec.msgpack.encode(data))
        Path(stream.name).replace(path)
        for old in path.parent.glob(f"triage-{kind}-*.msgpack"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        return
