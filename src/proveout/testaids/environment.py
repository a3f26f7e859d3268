"""How a program is started in a checkout's own environment."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import msgspec


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Words that come before a program: ``prefix`` for a program by name, or ``python`` that runs its module.

    ``what`` says in words which environment it is.
    """

    what: str
    prefix: tuple[str, ...] = ()
    python: str = ""

    def start(self, program: str, *arguments: str) -> tuple[str, ...]:
        """The argv of a program with these arguments."""
        if self.python:
            return (self.python, "-P", "-m", program, *arguments)
        return (*self.prefix, program, *arguments)


def uv(*, extras: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Environment:
    """``uv run`` with these extras and dependency groups."""
    options = [word for extra in extras for word in ("--extra", extra)]
    options += [word for group in groups for word in ("--group", group)]
    return Environment(what="uv's environment of the checkout", prefix=("uv", "run", *options))


def interpreter(python: str) -> Environment:
    """The environment of an interpreter."""
    return Environment(what=f"the environment of {python}", python=python)


def of_checkout(root: Path, needing: str) -> Environment | None:
    """The environment that a checkout brings, with the group or extra that has the package ``needing``.

    uv's where there is a ``uv.lock`` and uv is installed, else that of ``.venv``; None where there is neither.
    """
    if (root / "uv.lock").is_file() and shutil.which("uv"):
        groups, extras = _that_have(root, needing)
        return uv(groups=groups, extras=extras)
    for python in (root / ".venv" / "bin" / "python", root / ".venv" / "Scripts" / "python.exe"):
        if python.exists():
            return interpreter(str(python))
    return None


def _that_have(root: Path, package: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return (), ()
    group = _first(project.get("dependency-groups"), package)
    if group:
        return (group,), ()
    extra = _first(project.get("project", {}).get("optional-dependencies"), package)
    return (), ((extra,) if extra else ())


def _first(table: Any, package: str) -> str:
    for name, requirements in (table or {}).items():
        if any(isinstance(each, str) and _name(each) == package for each in requirements):
            return str(name)
    return ""


def _name(requirement: str) -> str:
    for position, character in enumerate(requirement):
        if not (character.isalnum() or character in "-_."):
            return requirement[:position].lower()
    return requirement.lower()
