"""What takes long to make, kept in the user's cache directory: rules read from YAML, patterns compiled for a scan.

Reading hundreds of rules takes longer than triage of a small log. A cache that cannot be written or read is simply
not used.
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


def cached(kind: str, files: Sequence[Path], load: Callable[[Sequence[Path]], T], form: type[T]) -> T:
    """What ``load(files)`` gives, from the cache where none of the files changed (path, size and time)."""
    digest = hashlib.sha256()
    for file in files:
        state = file.stat()
        digest.update(f"{file}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    key = digest.hexdigest()
    data = read(kind, key)
    if data is not None:
        try:
            return msgspec.msgpack.decode(data, type=form)
        except msgspec.MsgspecError:
            pass
    fresh = load(files)
    write(kind, key, msgspec.msgpack.encode(fresh))
    return fresh


def read_yaml(files: Sequence[Path]) -> dict[str, Any]:
    """The one YAML file of a data table."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: dict[str, Any] = yaml.load(files[0].read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - safe
    return data


def read(kind: str, key: str) -> bytes | None:
    """What is kept of this kind under this key, or None."""
    try:
        return _path(kind, key).read_bytes()
    except OSError:
        return None


def write(kind: str, key: str, data: bytes) -> None:
    """Keep ``data``; what was kept of this kind under other keys goes."""
    path = _path(kind, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(data)
        Path(stream.name).replace(path)
        for old in path.parent.glob(f"triage-{kind}-*.msgpack"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        return


def writable() -> bool:
    """Whether something can be kept."""
    place = _path("", "").parent
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK)


def _path(kind: str, key: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "proveout" / f"triage-{kind}-{key[:24]}.msgpack"
