"""Reads which marks a project declares: in its ``pyproject.toml``, in TOML files, or by a preset's name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.errors import UsageError, nearest

PRESETS = Path(__file__).with_name("presets")


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One declared mark.

    ``only``: a flag; tests with the mark run when it is given, and then no others; such marks exclude each
    other. ``include``: a flag; tests with the mark run as well when it is given. A test with either kind of
    mark is left out while its flag is missing. ``needs``: the module that the tests import; ``remedy``: what
    to do when it is missing; ``first``: such tests run before others.
    """

    name: str = ""
    about: str = ""
    only: str = ""
    include: str = ""
    needs: str = ""
    remedy: str = ""
    first: bool = False

    @property
    def flag(self) -> str:
        """The flag that lets its tests run, or an empty string."""
        return self.only or self.include

    @property
    def dest(self) -> str:
        """The name under which pytest keeps the flag's value."""
        return self.flag.lstrip("-").replace("-", "_")


def declared_marks(root: Path, named: Iterable[str]) -> tuple[Mark, ...]:
    """The marks of each preset or TOML file named, and of ``[tool.proveout.marks]`` in ``pyproject.toml``.

    A later declaration of a mark replaces an earlier one; the project's own, in ``root``, come last.
    Raises UsageError for what cannot be read, with file and key.
    """
    marks: dict[str, Mark] = {}
    for name in named:
        path = _named(root, name)
        marks |= _parse(_toml(path).get("marks"), path, "marks")
    project = root / "pyproject.toml"
    if project.is_file():
        table = _toml(project).get("tool", {}).get("proveout", {}).get("marks")
        if table is not None:
            marks |= _parse(table, project, "tool.proveout.marks")
    return tuple(marks.values())


def _named(root: Path, name: str) -> Path:
    preset = PRESETS / f"{name}.toml"
    path = root / name
    if preset.is_file():
        return preset
    if path.is_file():
        return path
    known = sorted(each.stem for each in PRESETS.glob("*.toml"))
    raise UsageError(
        f"no preset and no file {name!r}{nearest(name, known)}",
        where="proveout_marks",
        remedy=f"presets: {', '.join(known)}; a file is looked for under {root}",
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error


def _parse(table: object, path: Path, key: str) -> dict[str, Mark]:
    if not isinstance(table, dict):
        raise UsageError(f"needs a table [{key}.NAME] for each mark", where=str(path))
    marks = {}
    for name, fields in table.items():
        where = f"{path}: {key}.{name}"
        try:
            mark = msgspec.structs.replace(msgspec.convert(fields, Mark), name=name)
        except msgspec.ValidationError as error:
            unknown = set(fields) - set(Mark.__struct_fields__) if isinstance(fields, dict) else set()
            hint = "".join(nearest(each, Mark.__struct_fields__) for each in sorted(unknown))
            raise UsageError(f"{error}{hint}", where=where) from error
        if mark.only and mark.include:
            raise UsageError("has both 'only' and 'include'; a mark has one flag", where=where)
        if mark.flag and not mark.flag.startswith("--"):
            raise UsageError(f"flag {mark.flag!r} does not begin with '--'", where=where)
        marks[name] = mark
    return marks
