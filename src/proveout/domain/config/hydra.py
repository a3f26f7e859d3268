"""Hydra's defaults lists, composed from the files alone.

Covers what verl's tree uses: relative and absolute groups, packages (``group@package``, ``# @package``),
``override``, ``optional``, ``_self_``, interpolated choices and choices made on the command line. Source of
the rules: Hydra's documentation of the defaults list, checked against Hydra on verl's own tree.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from proveout.domain.config.inherit import deep_merge
from proveout.domain.config.overrides import Problem, apply, parse
from proveout.domain.errors import UsageError
from proveout.domain.tree import Tree

_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_CHOICE = re.compile(r"\$\{([\w/@.]+)\}")
_DEEPEST = 32
HYDRA_SECTION: dict[str, Any] = {
    "hydra": {
        "run": {"dir": "outputs"},
        "sweep": {"dir": "multirun", "subdir": "${hydra.job.num}"},
        "output_subdir": ".hydra",
        "searchpath": [],
        "verbose": False,
        "mode": None,
        "job": {"name": "main_ppo", "chdir": None, "num": 0, "config": {}},
    }
}


class Entry(msgspec.Struct, frozen=True):
    """One line of a defaults list: ``group`` '' for a plain file; ``package`` None where none was given."""

    group: str
    option: str | None
    package: str | None = None
    override: bool = False
    optional: bool = False


class _Composer:
    def __init__(self, tree: Tree, root: str, choices: dict[str, str]) -> None:
        self.tree, self.root, self.choices = tree, root, choices
        self.merged: dict[str, Any] = {}

    def file(self, relative: str, package: str, depth: int = 0) -> None:
        """Merge one file at ``package`` ('' is the top), its defaults first where ``_self_`` says so."""
        if depth > _DEEPEST:
            raise UsageError("the defaults lists go round in a circle", where=str(self.tree.path(relative)))
        path = self._path(relative)
        own = dict(self.tree.yaml(path))
        header = _PACKAGE.search(self.tree.text(path)[:400])
        if header:
            package = _package(header[1], package)
        entries = _entries(own.pop("defaults", None), path)
        if not any(isinstance(entry, str) for entry in entries):
            entries = ["_self_", *entries] if not entries else [*entries, "_self_"]
        for entry in entries:
            if isinstance(entry, str):
                self.merged = deep_merge(self.merged, _nest(own, package))
            elif not entry.override:
                self._entry(entry, relative, package, depth)

    def collect(self, relative: str, depth: int = 0) -> None:
        """Learn the choices of all defaults lists; the outermost ``override`` wins over what it includes."""
        if depth > _DEEPEST:
            return
        entries = _entries(self.tree.yaml(self._path(relative)).get("defaults"), relative)
        for entry in entries:
            if not isinstance(entry, str) and entry.override and entry.option is not None:
                self.choices.setdefault(_choice_key(entry), entry.option)
        for entry in entries:
            if isinstance(entry, str) or entry.override:
                continue
            if entry.group and entry.option is not None and "$" not in entry.option:
                self.choices.setdefault(_choice_key(entry), entry.option)
            if not entry.group and entry.option:
                self.collect(_join(relative, entry.option), depth + 1)

    def _entry(self, entry: Entry, relative: str, package: str, depth: int) -> None:
        option = self.choices.get(_choice_key(entry), entry.option) if entry.group else entry.option
        if option is None:
            return
        option = _CHOICE.sub(lambda match: self.choices.get(match[1], match[0]), option)
        group = _join(relative, entry.group) if entry.group else ""
        target = posixpath.join(group, option) if group else _join(relative, option)
        if entry.optional and not self.tree.exists(self._path(target)):
            return
        if not entry.group:
            inner = package
        elif entry.package is None:
            inner = _dotted(package, entry.group.replace("/", ".").replace("..", "").strip("."))
        else:
            inner = _package(entry.package, package)
        self.file(target, inner, depth + 1)

    def _path(self, relative: str) -> str:
        name = relative if relative.endswith((".yaml", ".yml")) else f"{relative}.yaml"
        return posixpath.normpath(posixpath.join(self.root, name))


def compose(
    tree: Tree, root: str, name: str, words: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Problem]]:
    """The configuration ``name`` under directory ``root`` with overrides, and what is wrong with the
    overrides.

    An override whose key is a group of some defaults list chooses another file. Raises UsageError for a
    defaults list that names a file which does not exist.
    """
    if ("hydra-choices", root + "/" + name) not in tree.kept:
        learned = _Composer(tree, root, {})
        learned.collect(name)
        tree.kept["hydra-choices", root + "/" + name] = learned.choices
    composer = _Composer(tree, root, dict(tree.kept["hydra-choices", root + "/" + name]))
    values: list[str] = []
    for word in words:
        override = parse(word)
        is_choice = (
            not isinstance(override, Problem)
            and override.key in composer.choices
            and isinstance(override.value, str)
        )
        if is_choice and not isinstance(override, Problem):
            composer.choices[override.key] = override.value
        else:
            values.append(word)
    key = ("hydra", repr((root, name, sorted(composer.choices.items()))))
    if key not in tree.kept:
        composer.file(name, "")
        tree.kept[key] = deep_merge(composer.merged, HYDRA_SECTION)
    config, problems = apply(tree.kept[key], values)
    config.pop("hydra", None)
    return config, problems


def _entries(defaults: Any, where: str) -> list[Entry | str]:
    entries: list[Entry | str] = []
    for item in defaults or []:
        if item == "_self_":
            entries.append("_self_")
        elif isinstance(item, str):
            entries.append(Entry("", item))
        elif isinstance(item, dict) and len(item) == 1:
            ((key, option),) = item.items()
            words = str(key).split()
            group, at, package = words[-1].partition("@")
            entries.append(
                Entry(
                    group,
                    None if option is None else str(option),
                    package if at else None,
                    "override" in words[:-1],
                    "optional" in words[:-1],
                )
            )
        else:
            raise UsageError(f"a line of the defaults list is not understood: {item!r}", where=where)
    return entries


def _choice_key(entry: Entry) -> str:
    return entry.group if entry.package is None else f"{entry.group}@{entry.package}"


def _join(relative: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(relative), target))


def _package(name: str, parent: str) -> str:
    if name in ("_global_", "_global_."):
        return ""
    if name.startswith("_global_."):
        return name.removeprefix("_global_.")
    if name in ("_here_", ""):
        return parent
    return _dotted(parent, name)


def _dotted(parent: str, child: str) -> str:
    return ".".join(part for part in (parent, child) if part)


def _nest(config: dict[str, Any], package: str) -> dict[str, Any]:
    for part in reversed(package.split(".") if package else []):
        config = {part: config}
    return config
