"""Reads from git trees, by commands that change nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from proveout.domain.errors import BlockedError


def ask(checkout: str, *words: str) -> str:
    """The output of ``git WORDS`` in a checkout. Raises BlockedError where git refuses."""
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    trusted = f"safe.directory={Path(checkout).resolve()}"
    done = subprocess.run(
        ["git", "-c", trusted, "-c", "core.fsmonitor=false", "-C", checkout, *words],
        env=inherited | quiet,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
        check=False,
    )
    if done.returncode:
        raise BlockedError(done.stderr.strip()[:300] or f"git {words[0]} failed", where=checkout)
    return done.stdout


def submodules(checkout: str) -> dict[str, str]:
    """Paths of the submodules that a tree declares, with their pinned commits (empty where unknown)."""
    if not (Path(checkout) / ".gitmodules").is_file():
        return {}
    listed = ask(checkout, "config", "--file", ".gitmodules", "--get-regexp", r"\.path$")
    paths = [line.split(" ", 1)[1] for line in listed.splitlines() if " " in line]
    try:
        tree = ask(checkout, "ls-tree", "HEAD", "--", *paths)
    except BlockedError:
        tree = ""
    pinned = {
        line.split("\t", 1)[1]: line.split()[2] for line in tree.splitlines() if line.startswith("160000")
    }
    return {path: pinned.get(path, "") for path in paths}


def filled(checkout: str, path: str) -> bool:
    """Whether a submodule's directory holds anything."""
    place = Path(checkout) / path
    return place.is_dir() and any(place.iterdir())
