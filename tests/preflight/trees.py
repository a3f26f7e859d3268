"""Stand-in trees of the same shape as the real ones, in our own words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def package(root: Path, dotted: str, text: str = "") -> Path:
    """A package that says nothing but where it is; namespace parents have no ``__init__``."""
    place = root.joinpath(*dotted.split("."))
    place.mkdir(parents=True, exist_ok=True)
    place.joinpath("__init__.py").write_text(text)
    return place


def bridge(root: Path, *, mcore: bool = True) -> str:
    """A Megatron-Bridge checkout; with or without its Megatron-LM submodule."""
    package(root / "src", "megatron.bridge", "MARK = 1\n")
    root.joinpath("3rdparty", "Megatron-LM").mkdir(parents=True)
    if mcore:
        package(root / "3rdparty" / "Megatron-LM", "megatron.core")
    return str(root)


def path_of(checkout: str) -> str:
    """PYTHONPATH under which a stand-in Bridge checkout and its Megatron-Core win."""
    return f"{checkout}/src:{checkout}/3rdparty/Megatron-LM"


def git(place: Path, *words: str) -> str:
    """git in a tree of the tests, with an identity of its own."""
    names = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-C", str(place), "-c", "protocol.file.allow=always", *words],
        env={**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def repository(place: Path) -> Path:
    """Makes a directory a git repository with all its files committed."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-q", "--allow-empty", "-m", "first")
    return place
