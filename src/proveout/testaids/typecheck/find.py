"""Finds the checker that a checkout has configured for a file."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

import msgspec

from proveout.domain.errors import UsageError, nearest
from proveout.testaids.typecheck.checkers import CHECKERS, Checker


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """A checker and the configuration file that stands nearest above the checked file."""

    checker: Checker
    config: Path

    @property
    def root(self) -> Path:
        """The directory that the checker runs in."""
        return self.config.parent


def find_configured(file: Path, wanted: str | None = None) -> Configured:
    """The checker to use for ``file``: of the nearest directory above it that configures one.

    In one directory a checker's own file comes before ``pyproject.toml`` and ``setup.cfg``. ``wanted`` limits
    the search to one checker. Raises UsageError where nothing is configured: what a checker finds without a
    configuration is not what the checkout asks for.
    """
    if wanted is not None and wanted not in CHECKERS:
        raise UsageError(f"no checker {wanted!r}{nearest(wanted, CHECKERS)}", where="--checker")
    checkers = [checker for checker in CHECKERS.values() if wanted in (None, checker.name)]
    for directory in file.resolve().parents:
        for look in (_own_file, _in_pyproject, _in_setup_cfg):
            for checker in checkers:
                if (config := look(directory, checker)) is not None:
                    return Configured(checker=checker, config=config)
    names = ", ".join(name for checker in checkers for name in checker.files)
    tables = ", ".join(f"[tool.{checker.table}]" for checker in checkers)
    raise UsageError(
        "no type checker is configured in its directory or above",
        where=str(file),
        remedy=f"looked for {names}, or pyproject.toml with {tables}",
    )


def _own_file(directory: Path, checker: Checker) -> Path | None:
    return next((directory / name for name in checker.files if (directory / name).is_file()), None)


def _in_pyproject(directory: Path, checker: Checker) -> Path | None:
    path = directory / "pyproject.toml"
    if not path.is_file():
        return None
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    return path if checker.table in tables else None


def _in_setup_cfg(directory: Path, checker: Checker) -> Path | None:
    path = directory / "setup.cfg"
    if not checker.section or not path.is_file():
        return None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except configparser.Error as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    return path if parser.has_section(checker.section) else None
