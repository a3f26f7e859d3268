"""Prepares test assets once for each content of what they are made from, and reuses them.

The checkout's own script builds them. What it built is kept in a cache under a hash of everything that went in:
the script, the local models and tokenizers, the interpreter and the locked packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from proveout.domain.errors import BlockedError, UsageError
from proveout.testaids.environment import Environment

SCRIPT = "tests/unit/prepare_unit_test_assets.py"
OUTPUT = "tests/unit/test_assets"
CACHE_VARIABLE = "PROVEOUT_CACHE"


class Assets(msgspec.Struct, frozen=True, kw_only=True):
    """Assets in place. ``how`` is ``present`` (they were there), ``cached`` (copied) or ``built``.

    ``key`` hashes what they are made from, ``content`` what they are (both SHA-256, hexadecimal).
    """

    directory: str
    how: str
    key: str
    content: str
    files: int


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What assets are made from. ``local`` maps hub names (``org/name``) to local directories."""

    root: Path
    script: Path
    output: Path
    environment: Environment
    local: dict[str, Path] = {}

    def key(self) -> str:
        """The hash of everything that decides what the script builds."""
        parts = [f"environment {' '.join((*self.environment.prefix, self.environment.python))}"]
        parts.append(f"script {_hash_file(self.script)}")
        lock = self.root / "uv.lock"
        parts.append(f"lock {_hash_file(lock)}" if lock.is_file() else "no lock")
        parts += [f"local {name} {content_hash(path)}" for name, path in sorted(self.local.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def cache_directory(outer: Mapping[str, str]) -> Path:
    """``$PROVEOUT_CACHE``, else ``proveout`` in the user's cache directory."""
    if named := outer.get(CACHE_VARIABLE):
        return Path(named)
    return Path(outer.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proveout"


def prepare(recipe: Recipe, cache: Path, *, rebuild: bool = False) -> Assets:
    """Put the assets into ``recipe.output``, building them only where the cache does not have them.

    Raises BlockedError where the script fails or leaves nothing; what was there before then stays.
    """
    key = recipe.key()
    kept = cache / "assets" / key
    if rebuild or not kept.is_dir():
        _build(recipe, kept)
        return _answer(recipe, "built", key, kept)
    content = content_hash(kept)
    if recipe.output.is_dir() and content_hash(recipe.output) == content:
        return _answer(recipe, "present", key, kept)
    _copy_over(kept, recipe.output)
    return _answer(recipe, "cached", key, kept)


def content_hash(directory: Path) -> str:
    """A hash over names and contents of all files of a directory, whatever their times and order on disk."""
    digest = hashlib.sha256()
    for path in _files(directory):
        digest.update(f"{path.relative_to(directory).as_posix()}\0{_hash_file(path)}\n".encode())
    return digest.hexdigest()


def _build(recipe: Recipe, kept: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="proveout-assets-") as scratch:
        env = {**os.environ, **_offline(recipe.local, Path(scratch))} if recipe.local else dict(os.environ)
        before = _states(recipe.output)
        argv = _argv(recipe)
        try:
            done = subprocess.run(argv, cwd=recipe.root, env=env, check=False)
        except OSError as error:
            raise BlockedError(f"{argv[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise BlockedError(
            f"it failed with exit status {done.returncode}, so there are no assets",
            where=str(recipe.script),
            remedy="give the models that it loads as local directories: --local ORG/NAME=DIRECTORY",
        )
    if not any(state != before.get(path) for path, state in _states(recipe.output).items()):
        raise BlockedError(f"it succeeded, but wrote nothing into {recipe.output}", where=str(recipe.script))
    _copy_over(recipe.output, kept)


def _argv(recipe: Recipe) -> list[str]:
    if recipe.environment.python:
        return [recipe.environment.python, str(recipe.script)]
    return [*recipe.environment.prefix, str(recipe.script)]


def _offline(local: Mapping[str, Path], scratch: Path) -> dict[str, str]:
    """A hub cache that holds the local directories under their hub names, and variables that make it the only one.

    The layout is that of huggingface_hub: ``models--ORG--NAME/{refs/main,snapshots/REVISION/...}``.
    """
    for name, directory in local.items():
        if not directory.is_dir():
            raise UsageError("no such directory", where=f"--local {name}={directory}")
        revision = content_hash(directory)[:40]
        repository = scratch / "hub" / f"models--{name.replace('/', '--')}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(revision, encoding="utf-8")
        (repository / "snapshots").mkdir()
        (repository / "snapshots" / revision).symlink_to(directory.resolve(), target_is_directory=True)
    hub = str(scratch / "hub")
    return {
        "HF_HOME": str(scratch),
        "HF_HUB_CACHE": hub,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }


def _answer(recipe: Recipe, how: str, key: str, kept: Path) -> Assets:
    return Assets(
        directory=str(recipe.output),
        how=how,
        key=key,
        content=content_hash(kept),
        files=sum(1 for _ in _files(kept)),
    )


def _copy_over(source: Path, target: Path) -> None:
    """Make ``target`` a copy of ``source``: whole, or as it was before."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    old = fresh / "old"
    try:
        shutil.copytree(source, fresh / "new")
        if target.exists():
            target.rename(old)
        (fresh / "new").rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _states(directory: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in _files(directory)}


def _files(directory: Path) -> Iterator[Path]:
    return iter(sorted(path for path in directory.rglob("*") if path.is_file()))


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_local(given: Sequence[str]) -> dict[str, Path]:
    """``ORG/NAME=DIRECTORY`` words as a map. Raises UsageError for one that is not of that form."""
    local = {}
    for each in given:
        name, equals, directory = each.partition("=")
        if not equals or not name or not directory:
            raise UsageError("needs ORG/NAME=DIRECTORY", where=f"--local {each}")
        local[name] = Path(directory).resolve()
    return local
