"""The tree of another commit, beside the run: made from a checkout's objects, which stay untouched."""

from __future__ import annotations

import shutil
from pathlib import Path

from proveout.domain.errors import BlockedError, UsageError
from proveout.plan.git import git, names

_LINK = "160000"


def commit_of(checkout: Path, revision: str) -> str:
    """The full name of the commit that ``revision`` means in ``checkout``; UsageError where it means none."""
    try:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return git(checkout, *words).decode().strip()
    except UsageError as error:
        raise UsageError(
            f"{revision!r} is no commit of this checkout",
            where=str(checkout),
            remedy="give a commit, branch or tag; a shallow clone may lack it (git fetch --unshallow)",
        ) from error


def make_tree(checkout: Path, commit: str, place: Path) -> Path:
    """The files of ``commit`` in ``place``, whole or not at all; what is there already is used.

    The new tree borrows the checkout's objects (``objects/info/alternates``), so nothing is written into the
    checkout and nothing is fetched. A submodule is made the same way where the checkout has it initialised, at
    the commit that ``commit`` pins.

    Raises:
        BlockedError: an object is missing (a partial or shallow clone, a submodule's pinned commit), no space.
    """
    if place.exists():
        return place
    temporary = place.with_name(f".new-{place.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        _make(checkout, commit, temporary)
        temporary.rename(place)
    except (UsageError, OSError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise BlockedError(
            f"the tree of commit {commit[:9]} cannot be made: {error}",
            where=str(checkout),
            remedy="fetch the missing commits there, or free space beside the run",
        ) from error
    return place


def _make(checkout: Path, commit: str, place: Path) -> None:
    objects = checkout / git(checkout, "rev-parse", "--git-path", "objects").decode().strip()
    place.mkdir(parents=True)
    git(place, "init", "--quiet", "--template=")
    info = place / ".git" / "objects" / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").write_text(f"{objects.resolve()}\n", encoding="utf-8")
    git(place, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)
    for entry in names(git(place, "ls-tree", "-r", "-z", commit)):
        facts, _, path = entry.partition("\t")
        if facts.startswith(f"{_LINK} ") and (checkout / path / ".git").exists():
            (place / path).rmdir()
            _make(checkout / path, facts.split()[2], place / path)
