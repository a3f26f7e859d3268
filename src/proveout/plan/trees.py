"""A fresh tree of one commit, beside the checkout that it comes from, which is only read."""

from __future__ import annotations

import subprocess
from pathlib import Path

from proveout.domain.errors import UsageError


def tree_at(checkout: str, role: str, revision: str, folder: Path) -> Path:
    """A clean tree of ``revision`` under ``folder``, with the submodules that the checkout has.

    A tree of that commit which is there already is taken again when it is still clean. Raises UsageError for a
    revision that the checkout does not know, and for a tree there that somebody changed.
    """
    commit = _git(
        checkout, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", what=revision
    ).strip()
    tree = folder / f"{role}-{commit[:12]}"
    if tree.exists():
        if _git(str(tree), "status", "--porcelain").strip() or _head(tree) != commit:
            raise UsageError(
                f"the tree of {role} at {revision} was changed", where=str(tree), remedy="move it away"
            )
        return tree
    folder.mkdir(parents=True, exist_ok=True)
    _clone(Path(checkout), tree, commit)
    for line in _git(str(tree), "ls-tree", "-r", "HEAD").splitlines():
        mode, _, rest = line.partition(" ")
        if mode == "160000":
            pinned, _, path = rest.partition(" ")[2].partition("\t")
            if (Path(checkout) / path / ".git").exists():
                (tree / path).rmdir()
                _clone(Path(checkout) / path, tree / path, pinned)
    return tree


def _clone(source: Path, target: Path, commit: str) -> None:
    _git(str(source), "clone", "--quiet", "--shared", "--no-checkout", str(source.absolute()), str(target))
    _git(str(target), "checkout", "--quiet", "--detach", commit)


def _head(tree: Path) -> str:
    return _git(str(tree), "rev-parse", "HEAD").strip()


def _git(folder: str, *words: str, what: str = "") -> str:
    done = subprocess.run(
        ["git", "-C", folder, *words],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip() or (f"it knows no {what!r}" if what else f"git {words[0]} failed")
        raise UsageError(said, where=folder)
    return done.stdout
