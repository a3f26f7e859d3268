"""What there is to copy: the files of a checkout as they are, and the commit below them. Nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proveout.domain.errors import UsageError
from proveout.launch.sync import manifest
from proveout.launch.sync.place import start

QUIET = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
BASES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
)


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """One git tree: ``path`` below the checkout ('' for itself), its commit and branch, and the refs to hand on."""

    root: str
    path: str
    commit: str
    branch: str
    refs: tuple[str, ...] = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout's files with their hash, and its repositories, submodules after what they are in."""

    root: str
    files: tuple[str, ...]
    lines: tuple[bytes, ...]
    tree: str
    repositories: tuple[Repository, ...]


def state_of(root: Path) -> State:
    """Tracked and untracked files as they are now (ignored ones left out), with those of initialised submodules.

    A tree without git is taken whole. Raises UsageError for what cannot be read.
    """
    if (root / ".git").exists():
        repositories = tuple(_repositories(root, ""))
        names = [name for repository in repositories for name in _files(repository)]
    else:
        repositories, names = (), list(manifest.names_below(root))
    try:
        lines = manifest.lines_of(root, names)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(error.filename)) from error
    return State(
        root=str(root),
        files=tuple(names),
        lines=tuple(lines),
        tree=manifest.tree_hash(lines),
        repositories=repositories,
    )


def git(where: str, *words: str, ok: tuple[int, ...] = (0,), env: dict[str, str] | None = None) -> bytes:
    """What ``git WORDS`` prints. Raises UsageError with git's last line."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(env or {})}
    done = start(["git", *QUIET, "-C", where, *words], env=clean)
    if done.returncode not in ok:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        raise UsageError(f"git {words[0]}: {said[-1]}", where=where)
    return done.stdout


def _repositories(root: Path, path: str) -> Iterator[Repository]:
    here = str(root / path)
    commit = git(here, "rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1)).decode().strip()
    branch = git(here, "symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1)).decode().strip()
    refs = tuple(
        ref for ref in BASES if commit and git(here, "rev-parse", "--verify", "--quiet", ref, ok=(0, 1))
    )
    yield Repository(root=str(root), path=path, commit=commit, branch=branch, refs=refs)
    for entry in git(here, "ls-files", "--stage", "-z").split(b"\0"):
        if entry.startswith(b"160000 "):
            below = str(Path(path) / os.fsdecode(entry.partition(b"\t")[2]))
            if (root / below / ".git").exists():
                yield from _repositories(root, below)


def _files(repository: Repository) -> Iterator[str]:
    here = Path(repository.root) / repository.path
    listed = git(str(here), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for raw in listed.split(b"\0"):
        path = here / os.fsdecode(raw)
        if raw and (path.is_symlink() or path.is_file()):
            yield str(path.relative_to(repository.root))
