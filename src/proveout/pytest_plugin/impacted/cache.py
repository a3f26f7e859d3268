"""Facts by content: a file is read once per content, whatever its name, branch or time stamp."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from proveout.pytest_plugin.impacted.config_files import affects_everything
from proveout.pytest_plugin.impacted.facts import EMPTY, FACTS_VERSION, Facts
from proveout.pytest_plugin.impacted.python import python_facts
from proveout.pytest_plugin.impacted.text import text_facts
from proveout.pytest_plugin.impacted.tree import SUBMODULE, Table

_TEXT = {
    ".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt", ".rst", ".md", ".j2", ".jinja",
    ".jinja2", ".pth", ".env", ".sub", ".ipynb", ".doctest", ".mk",
}  # fmt: skip
_LARGEST_TEXT = 512 * 1024
"""A longer text is taken for plain data that names no other file."""


class _Stored(msgspec.Struct):
    version: int
    facts: dict[str, Facts]


class FactCache:
    """Facts of files by suffix and blob hash, kept in one file; a damaged or older file is read as empty."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._known: dict[str, Facts] = {}
        self._used: dict[str, Facts] = {}
        self._grown = False
        if path is not None:
            try:
                stored = msgspec.msgpack.decode(path.read_bytes(), type=_Stored)
            except (OSError, msgspec.MsgspecError):
                return
            if stored.version == FACTS_VERSION:
                self._known = stored.facts

    def facts(self, root: Path, table: Table) -> dict[str, Facts]:
        """Facts of every file of the table; an unreadable file has none."""
        return {path: self._one(root, path, blob) for path, blob in table.items()}

    def known(self, path: str, blob: str) -> Facts | None:
        """Facts of a content seen earlier, which need not be on disk any more."""
        key = _key(path, blob)
        facts = self._known.get(key)
        if facts is not None:
            self._used[key] = facts
        return facts

    def save(self) -> None:
        """Write what is new, atomically; a directory that cannot be written is no error, only slower."""
        if self.path is None or not self._grown:
            return
        recent = dict(list(self._known.items())[-4 * len(self._used) - 1000 :])
        stored = _Stored(FACTS_VERSION, {**recent, **self._used})
        write_atomically(self.path, msgspec.msgpack.encode(stored))

    def _one(self, root: Path, path: str, blob: str) -> Facts:
        suffix = _suffix(path)
        if not suffix or blob.startswith(SUBMODULE) or (suffix != ".py" and _silent(path)):
            return EMPTY
        key = f"{suffix}:{blob}"
        facts = self._known.get(key)
        if facts is None:
            facts = _read(root / path, suffix)
            if facts is None:
                return EMPTY
            self._known[key] = facts
            self._grown = True
        self._used[key] = facts
        return facts


def write_atomically(path: Path, content: bytes) -> bool:
    """Replace ``path`` by ``content``; False when the place cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore = path.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return False
    return True


def _silent(path: str) -> bool:
    """Whether a text names files only for people or for tools, so that following it says nothing about tests."""
    return path.endswith((".md", ".rst")) or affects_everything(path)


def _key(path: str, blob: str) -> str:
    return f"{_suffix(path)}:{blob}"


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    suffix = name[dot:] if dot > 0 else ""
    if suffix in {".py", ".pyw"}:
        return ".py"
    return ".txt" if suffix in _TEXT or not suffix else ""


def _read(full: Path, suffix: str) -> Facts | None:
    try:
        if full.is_symlink():
            return text_facts(str(full.readlink()))
        content = full.read_bytes()
    except OSError:
        return None
    if suffix == ".py":
        return python_facts(content)
    if len(content) > _LARGEST_TEXT or b"\0" in content[:8000]:
        return EMPTY
    if not full.suffix and content.startswith(b"#!") and b"python" in content.split(b"\n", 1)[0]:
        return python_facts(content)
    return text_facts(content.decode("utf-8", "replace"))
