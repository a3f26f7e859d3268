"""Which files a project has, and the git hash of each file's content.

git is only ever asked, never told: no command here changes the index, a ref or an object. Outside a git repository
the same hashes are computed from a walk over the directory.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from proveout.domain.errors import UsageError

_SKIPPED = {
    "node_modules", "__pycache__", "venv", "build", "dist", "site-packages", ".proveout", ".git", ".hg", ".tox", ".nox",
    ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".eggs",
}  # fmt: skip
Table = dict[str, str]
"""Path relative to the root, with ``/``, to the blob hash of its content (a submodule: its commit)."""
SUBMODULE = "commit:"
"""What the hash of a submodule starts with."""


def find_root(start: Path) -> tuple[Path, bool]:
    """The top directory of the work tree that holds ``start`` and True, or ``start`` and False outside git."""
    top = _git(start, "rev-parse", "--show-toplevel", check=False)
    if top is None or not top.strip():
        return start.resolve(), False
    return Path(top.decode().rstrip("\n")).resolve(), True


def current(root: Path, *, in_git: bool = True) -> Table:
    """The files of the work tree as they are on disk now: tracked, and untracked ones that git does not ignore."""
    return _work_tree(root) if in_git else _walked(root)


def at_base(root: Path, revision: str) -> Table:
    """The files where the current commit left ``revision``: their merge base, or ``revision`` itself without one.

    Raises UsageError when the revision does not exist in this repository.
    """
    if (
        revision.startswith("-")
        or _git(root, "rev-parse", "--verify", "-q", revision + "^{commit}", check=False) is None
    ):
        raise UsageError(
            f"no commit {revision!r} in this repository",
            where=str(root),
            remedy="give --base a commit, tag or branch that `git rev-parse` knows here (a shallow clone may lack it)",
        )
    merged = _git(root, "merge-base", revision, "HEAD", check=False)
    commit = merged.decode().strip() if merged and merged.strip() else revision
    listing = _git(root, "ls-tree", "-r", "-z", "--full-tree", commit) or b""
    table: Table = {}
    for entry in listing.split(b"\0"):
        if entry:
            head, _, path = entry.partition(b"\t")
            mode, _kind, blob = head.split()
            table[os.fsdecode(path)] = _entry(mode, blob)
    return table


def changed(before: Table, now: Table) -> dict[str, str]:
    """Changed paths to what became of them: ``added``, ``modified`` or ``deleted`` (a rename is both ends)."""
    found = {path: "modified" if path in before else "added" for path in now if before.get(path) != now[path]}
    found.update((path, "deleted") for path in before if path not in now)
    return found


def linked_directories(root: Path, table: Table) -> dict[str, str]:
    """Tracked symbolic links to directories inside the root, and the directory that each leads to."""
    found = {}
    for path in table:
        full = root / path
        if full.is_symlink() and full.is_dir():
            target = full.resolve()
            if target.is_relative_to(root):
                found[path] = target.relative_to(root).as_posix()
    return found


def _work_tree(root: Path) -> Table:
    table: Table = {}
    for entry in (_git(root, "ls-files", "-s", "-z") or b"").split(b"\0"):
        if entry:
            head, _, path = entry.partition(b"\t")
            mode, blob, _stage = head.split()
            table[os.fsdecode(path)] = _entry(mode, blob)
    edited = _names(_git(root, "diff-files", "--name-only", "-z", "--ignore-submodules=none"))
    untracked = _names(_git(root, "ls-files", "-o", "--exclude-standard", "-z"))
    to_hash = []
    for name in [*edited, *untracked]:
        full = root / name
        if full.is_symlink():
            table[name] = _blob(os.fsencode(full.readlink()))
        elif full.is_dir():
            table[name.rstrip("/")] = _submodule(full)
        elif not full.exists():
            table.pop(name, None)
        else:
            to_hash.append(name)
    table.update(_hashed(root, to_hash))
    return table


def _entry(mode: bytes, blob: bytes) -> str:
    return (SUBMODULE if mode == b"160000" else "") + blob.decode()


def _submodule(directory: Path) -> str:
    inner = _work_tree(directory) if (directory / ".git").exists() else _walked(directory)
    listing = "\n".join(f"{blob} {path}" for path, blob in sorted(inner.items()))
    return SUBMODULE + _blob(listing.encode("utf-8", "surrogateescape"))


def _hashed(root: Path, paths: list[str]) -> Table:
    """Hashes as git would store the content, with the repository's line-ending and other filters."""
    simple = [path for path in paths if "\n" not in path and '"' not in path]
    table: Table = {}
    if simple:
        text = "".join(path + "\n" for path in simple).encode("utf-8", "surrogateescape")
        answer = _git(root, "hash-object", "--stdin-paths", stdin=text, check=False)
        hashes = answer.decode().split() if answer else []
        if len(hashes) == len(simple):
            table = dict(zip(simple, hashes, strict=True))
    for path in paths:
        if path not in table:
            try:
                table[path] = _blob((root / path).read_bytes())
            except OSError:
                table[path] = "unreadable"
    return table


def _walked(root: Path) -> Table:
    table: Table = {}
    for directory, inner, files in os.walk(root):
        inner[:] = [
            name
            for name in inner
            if name not in _SKIPPED and not os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        ]
        for name in files:
            full = Path(directory, name)
            if name.endswith((".pyc", ".pyo")) or not full.is_file():
                continue
            try:
                table[full.relative_to(root).as_posix()] = _blob(full.read_bytes())
            except OSError:
                continue
    return table


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _names(output: bytes | None) -> list[str]:
    return [os.fsdecode(name) for name in (output or b"").split(b"\0") if name]


def _git(root: Path, *arguments: str, stdin: bytes | None = None, check: bool = True) -> bytes | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            input=stdin,
            capture_output=True,
            env=environment,
            check=False,
        )
    except OSError:
        return None
    if done.returncode == 0:
        return done.stdout
    if check:
        raise UsageError(
            f"git {arguments[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()}", where=str(root)
        )
    return None
