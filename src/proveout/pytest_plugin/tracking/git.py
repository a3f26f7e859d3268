"""The commit that a session tests, asked of git without changing anything."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_and_dirty(root: Path) -> tuple[str, bool | None]:
    """The commit of ``root`` and whether tracked files differ from it.

    Where git cannot say, the commit is a sentence that says why, and dirty is None.
    """
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        return commit, bool(_git(root, "status", "--porcelain", "--untracked-files=no").strip())
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().partition("\n")[0]
        return f"Error getting git commit: {said or error}", None
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Error getting git commit: {error}", None


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "--no-optional-locks", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
