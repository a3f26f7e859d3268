"""What a project's own configuration says about its tests: read as data, never executed."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Project:
    """How tests are found, and which modules every session loads."""

    test_files: tuple[str, ...] = ("test_*.py", "*_test.py")
    test_paths: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    scripts: dict[str, str] = field(default_factory=dict)
    """Console script to the module that it starts."""
    entry_points: tuple[str, ...] = ()
    doctest_modules: bool = False

    def is_test(self, path: str) -> bool:
        """Whether pytest would collect the file by its name."""
        name = path.rpartition("/")[2]
        if not name.endswith(".py"):
            return False
        return self.doctest_modules or any(
            fnmatch(path if "/" in pattern else name, pattern) for pattern in self.test_files
        )


def read_project(root: Path) -> Project:
    """Read pyproject.toml, pytest.ini, tox.ini and setup.cfg of ``root``; what cannot be read counts as absent."""
    pyproject = _toml(root / "pyproject.toml")
    table = pyproject.get("project", {})
    options = _pytest_options(root, pyproject)
    added = _words(options.get("addopts", ""))
    points: dict[str, dict[str, str]] = table.get("entry-points", {})
    scripts = {**table.get("scripts", {}), **table.get("gui-scripts", {})}
    plugins = [added[place + 1] for place, word in enumerate(added[:-1]) if word == "-p"]
    plugins += [word[2:] for word in added if word.startswith("-p") and len(word) > 2]
    plugins += list(points.get("pytest11", {}).values())
    where = pyproject.get("tool", {}).get("setuptools", {}).get("packages", {})
    found = where.get("find", {}).get("where", []) if isinstance(where, dict) else []
    return Project(
        test_files=tuple(_words(options.get("python_files", ""))) or Project.test_files,
        test_paths=tuple(path.rstrip("/") for path in _words(options.get("testpaths", ""))),
        roots=tuple(path.strip("./") for path in [*_words(options.get("pythonpath", "")), *found]),
        plugins=tuple(name.partition(":")[0] for name in plugins if not name.startswith("no:")),
        scripts={name: str(target).partition(":")[0] for name, target in scripts.items()},
        entry_points=tuple(
            str(target).partition(":")[0] for group in points.values() for target in group.values()
        ),
        doctest_modules="--doctest-modules" in added,
    )


def _pytest_options(root: Path, pyproject: dict[str, Any]) -> dict[str, Any]:
    for name in ("pytest.ini", ".pytest.ini"):
        if (root / name).is_file():
            return _ini(root / name, "pytest")
    tool = pyproject.get("tool", {}).get("pytest", {})
    if tool:
        options: dict[str, Any] = tool.get("ini_options", tool)
        return options
    return _ini(root / "tox.ini", "pytest") or _ini(root / "setup.cfg", "tool:pytest")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _ini(path: Path, section: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}
    return dict(parser[section]) if parser.has_section(section) else {}


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError:
            return re.split(r"\s+", value.strip())
    return [str(word) for word in value] if isinstance(value, list) else []
