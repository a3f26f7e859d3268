"""Path expressions in Python source, evaluated as far as they are literal: ``Path(__file__).parents[1] / "data"``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

_SAME = {
    "Path",
    "PurePath",
    "resolve",
    "absolute",
    "abspath",
    "realpath",
    "expanduser",
    "str",
    "fspath",
    "as_posix",
}
_JOIN = {"join", "joinpath"}
_METHODS = {"resolve", "absolute", "joinpath", "as_posix", "with_name"}
_LIST_METHODS = {"glob", "rglob", "iterdir", "iglob", "listdir", "scandir", "walk"}
_OPENED = {
    "open",
    "Path",
    "PurePath",
    "listdir",
    "scandir",
    "walk",
    "glob",
    "iglob",
    "isdir",
    "exists",
    "chdir",
}
_AT_ROOT = 98
"""Levels above any file: the root of the work tree."""
_DEEPEST = 6


@dataclass(frozen=True)
class Place:
    """A path: ``up`` levels above the file that names it (0 the file itself, None not known) and what follows.

    ``certain`` is False when the base is a value of which nothing suggests that it lies in the project.
    """

    up: int | None
    parts: tuple[str, ...] = ()
    certain: bool = True

    def joined(self, *more: str) -> Place:
        """This place and further parts."""
        place = self
        for part in (part for text in more for part in text.split("/") if part not in {"", "."}):
            place = place.above(1) if part == ".." else replace(place, parts=(*place.parts, part))
        return place

    def literal(self) -> bool:
        """Whether at least one part is a name rather than a pattern."""
        return any(character.isalpha() for part in self.parts for character in part)

    def above(self, levels: int) -> Place:
        """The directory ``levels`` up from here."""
        kept = self.parts[: max(len(self.parts) - levels, 0)]
        rest = levels - (len(self.parts) - len(kept))
        return replace(self, parts=kept, up=self.up + rest if self.up is not None else None)

    def text(self) -> str:
        """``up:pattern`` with ``-`` for an unknown base, as it is stored."""
        return f"{'-' if self.up is None else min(self.up, _AT_ROOT)}:{'/'.join(self.parts)}"


class PlaceReader:
    """Collects the nodes that matter while a tree is walked, then says which places they name."""

    def __init__(self) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        self.imported: set[str] = set()
        self.expressions: list[ast.expr] = []
        self.listings: list[ast.Call] = []
        self.search_path: list[ast.Call] = []
        self._handlers: dict[type[ast.expr], Callable[[Any, int], list[Place]]] = {
            ast.Constant: self._constant,
            ast.JoinedStr: self._formatted,
            ast.Name: self._named,
            ast.BinOp: self._binary,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._called,
        }

    def places(self) -> tuple[set[str], set[str]]:
        """Places that the file reads, and places that it puts on the module search path, as stored texts."""
        roots: set[str] = set()
        hidden: set[int] = set()
        for call in self.search_path:
            for node in ast.walk(call):
                hidden.add(id(node))
                if isinstance(node, ast.Name):
                    hidden.update(
                        id(inner) for value in self.values.get(node.id, ()) for inner in ast.walk(value)
                    )
            for argument in call.args:
                roots.update(place.text() for place in self._evaluate(argument, 0) if place.certain)
        found: set[str] = set()
        for call in self.listings:
            found.update(place.text() for place in self._listed(call))
            hidden.update(id(node) for node in ast.walk(call.func))
        inner = {id(node) for whole in self.expressions for node in ast.iter_child_nodes(whole)}
        for expression in self.expressions:
            if id(expression) in hidden or id(expression) in inner:
                continue
            for place in self._evaluate(expression, 0):
                known = place.up is not None and place.up > 0
                beside = place.up == 1 and bool(place.parts)
                if beside or (place.literal() and (known or place.certain or len(place.parts) > 1)):
                    found.add(place.text())
        return found, roots

    def _listed(self, call: ast.Call) -> Iterator[Place]:
        name = _name(call.func)
        method = isinstance(call.func, ast.Attribute) and name in {"glob", "rglob", "iterdir", "walk"}
        module = isinstance(call.func, ast.Attribute) and _name(call.func.value) in {
            "os",
            "glob",
            "ast",
            "fnmatch",
        }
        if module and isinstance(call.func, ast.Attribute) and _name(call.func.value) == "ast":
            return
        if method and not module and isinstance(call.func, ast.Attribute):
            bases = self._evaluate(call.func.value, 0)
            pattern = self._pattern(call, 0) if name in {"glob", "rglob"} else "**"
            pattern = f"**/{pattern}" if name == "rglob" else pattern
        else:
            bases = self._evaluate(call.args[0], 0) if call.args else [Place(_AT_ROOT)]
            pattern = "" if name in {"glob", "iglob"} else "**"
        for base in bases:
            if base.certain or len(base.parts) > 1:
                yield base.joined(pattern)

    def _pattern(self, call: ast.Call, position: int) -> str:
        if len(call.args) <= position:
            return "**"
        return _pattern_text(call.args[position])

    def _evaluate(self, node: ast.expr, depth: int) -> list[Place]:
        """Places that an expression may mean; an empty list when it is no path at all."""
        handler = self._handlers.get(type(node))
        if handler is None or depth > _DEEPEST:
            return [Place(None, certain=False)]
        return handler(node, depth)

    def _constant(self, node: ast.Constant, depth: int) -> list[Place]:
        return [Place(_AT_ROOT).joined(node.value)] if isinstance(node.value, str) and node.value else []

    def _binary(self, node: ast.BinOp, depth: int) -> list[Place]:
        if not isinstance(node.op, ast.Div | ast.Add):
            return [Place(None, certain=False)]
        end = _pattern_text(node.right)
        return [base.joined(end) for base in self._evaluate(node.left, depth + 1)]

    def _subscript(self, node: ast.Subscript, depth: int) -> list[Place]:
        levels = node.slice.value if isinstance(node.slice, ast.Constant) else _AT_ROOT
        owner = node.value
        if isinstance(owner, ast.Attribute) and owner.attr == "parents" and isinstance(levels, int):
            return [base.above(levels + 1) for base in self._evaluate(owner.value, depth + 1)]
        return [Place(None, certain=False)]

    def _formatted(self, node: ast.JoinedStr, depth: int) -> list[Place]:
        first = node.values[0] if node.values else None
        if isinstance(first, ast.FormattedValue):
            rest = "".join(_pattern_text(part) for part in node.values[1:])
            return [base.joined(rest) for base in self._evaluate(first.value, depth + 1)]
        return [Place(_AT_ROOT).joined(_pattern_text(node))]

    def _named(self, node: ast.Name, depth: int) -> list[Place]:
        name = node.id
        if name == "__file__":
            return [Place(0)]
        if name in self.values:
            return [place for value in self.values[name][:4] for place in self._evaluate(value, depth + 1)]
        return [Place(None, certain=name in self.imported or (name.isupper() and len(name) > 1))]

    def _attribute(self, node: ast.Attribute, depth: int) -> list[Place]:
        if node.attr == "parent":
            return [base.above(1) for base in self._evaluate(node.value, depth + 1)]
        if node.attr in {"rootpath", "rootdir", "invocation_dir"}:
            return [Place(_AT_ROOT)]
        owner = _name(node.value)
        certain = node.attr == "__file__" or (owner in self.imported and owner not in {"os", "sys"})
        return [Place(None, certain=certain)]

    def _called(self, node: ast.Call, depth: int) -> list[Place]:
        name = _name(node.func)
        if name in {"cwd", "getcwd"}:
            return [Place(_AT_ROOT)]
        if name == "files" and node.args and _name(node.args[0]) in {"__package__", "__name__"}:
            return [Place(1)]
        if name in _METHODS and isinstance(node.func, ast.Attribute):
            bases, rest = self._evaluate(node.func.value, depth + 1), node.args
            if name == "with_name":
                bases = [base.above(1) for base in bases]
        elif name in {"dirname"} | _SAME | _JOIN and node.args:
            bases, rest = self._evaluate(node.args[0], depth + 1), node.args[1:]
            if name == "dirname":
                bases = [base.above(1) for base in bases]
        else:
            return [Place(_AT_ROOT) if name in {"Path", "PurePath"} else Place(None, certain=False)]
        if name in {"resolve", "absolute"}:
            return bases
        return [base.joined(*(_pattern_text(argument) for argument in rest)) for base in bases]


def is_path_expression(node: ast.expr) -> bool:
    """Whether the form of an expression says that it is a path."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    if isinstance(node, ast.Call):
        name = _name(node.func)
        return name in _JOIN | {"with_name"} or (name in _OPENED and bool(node.args))
    return False


def is_listing(node: ast.Call) -> bool:
    """Whether a call lists a directory."""
    return _name(node.func) in _LIST_METHODS


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _pattern_text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_pattern_text(part) for part in node.values)
    return "*"
