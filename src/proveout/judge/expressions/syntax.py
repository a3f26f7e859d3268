"""From text to a syntax tree that holds nothing but the allow-listed syntax, bounded in size and depth.

Python's parser is used for its grammar alone: it builds a tree and runs nothing.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from proveout.domain.errors import nearest
from proveout.judge.expressions.errors import RefusedError
from proveout.judge.expressions.helpers import HELPERS

MAX_LENGTH = 2000
MAX_NODES = 400
MAX_DEPTH = 24
MAX_NUMBER = 1e18
METHODS = ("values", "items", "keys")
DATA = "data"

_CONTEXT = (ast.Load, ast.Store)
_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)
_SILENT = (*_OPERATORS, *_CONTEXT)
_ALLOWED = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Call, ast.keyword, ast.Name, ast.Constant),
    *(ast.Subscript, ast.Tuple, ast.List, ast.Set, ast.GeneratorExp, ast.ListComp, ast.comprehension),
    ast.Attribute,
)
_NAMES = {
    ast.Lambda: "a lambda",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "an assignment (:=)",
    ast.DictComp: "a dict comprehension",
    ast.SetComp: "a set comprehension",
    ast.Dict: "a dict",
    ast.IfExp: "a conditional (if/else)",
    ast.Starred: "an unpacking (*)",
    ast.Slice: "a slice",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.Is: "'is'",
    ast.IsNot: "'is not'",
    ast.LShift: "a shift",
    ast.RShift: "a shift",
    ast.BitAnd: "'&'",
    ast.BitOr: "'|'",
    ast.BitXor: "'^'",
    ast.Invert: "'~'",
    ast.MatMult: "'@'",
}


class Parsed(NamedTuple):
    """An accepted expression: its tree, and all its nodes but operators and contexts, outermost first."""

    tree: ast.expr
    nodes: list[ast.AST]


def parse(text: str) -> Parsed:
    """One metric expression.

    Raises RefusedError, with the column, for anything but comparisons, and/or/not, arithmetic, ``in``, known
    helpers, ``data[...]`` with further indices, tuples and lists, ``.values()``, ``.items()``, ``.keys()``
    and one comprehension level.
    """
    skipped = len(text) - len(text.lstrip())
    try:
        return _parse(text.strip())
    except RefusedError as error:
        raise RefusedError(error.what, error.column and error.column + skipped) from None


def _parse(text: str) -> Parsed:
    if len(text) > MAX_LENGTH:
        raise RefusedError(f"{len(text)} characters, {MAX_LENGTH} are the most")
    _check_nesting(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise RefusedError(f"not an expression: {error.msg}", error.offset) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise RefusedError(f"not an expression: {error}") from None
    nodes: list[ast.AST] = []
    for part in _walk(tree):
        nodes.append(part.node)
        if len(nodes) > MAX_NODES:
            raise RefusedError(f"more than {MAX_NODES} parts", part.column)
        if part.depth > MAX_DEPTH:
            raise RefusedError(f"nested deeper than {MAX_DEPTH}", part.column)
        _check(part)
    return Parsed(tree, nodes)


class _Part(NamedTuple):
    """A node of the tree: its depth, the nearest column, the names that loops around it bind."""

    node: ast.AST
    depth: int
    column: int | None
    bound: frozenset[str]


def _check_nesting(text: str) -> None:
    if sum(map(text.count, "([{")) <= MAX_DEPTH:
        return
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth > MAX_DEPTH:
            raise RefusedError(f"brackets nested deeper than {MAX_DEPTH}", index + 1)


def _walk(tree: ast.AST) -> Iterator[_Part]:
    stack = [_Part(tree, 0, 1, frozenset())]
    while stack:
        part = stack.pop()
        node, depth, column, bound = part
        offset = getattr(node, "col_offset", None)
        column = column if offset is None else offset + 1
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            bound |= {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        yield _Part(node, depth, column, bound)
        children = [
            _Part(child, depth + 1, column, bound)
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, _SILENT)
        ]
        stack += reversed(children)


def _check(part: _Part) -> None:
    node, _, column, bound = part
    if not isinstance(node, _ALLOWED):
        raise RefusedError(f"{_NAMES.get(type(node), type(node).__name__)} is not allowed here", column)
    if isinstance(node, ast.Constant):
        _check_constant(node.value, column)
    elif isinstance(node, ast.Name):
        if node.id.startswith("_") or (isinstance(node.ctx, ast.Store) and node.id in (DATA, *HELPERS)):
            raise RefusedError(f"the name {node.id!r} is not allowed", column)
        if node.id not in bound and node.id != DATA and node.id not in HELPERS:
            raise RefusedError(f"unknown name {node.id!r}{nearest(node.id, [DATA, *HELPERS])}", column)
    elif isinstance(node, ast.Call):
        _check_call(node, column)
    elif isinstance(node, ast.Attribute) and node.attr not in METHODS:
        raise RefusedError(f"the attribute .{node.attr} is not allowed", column)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        _check_comprehension(node, column)


def _check_constant(value: object, column: int | None) -> None:
    if value is Ellipsis or isinstance(value, (bytes, complex)):
        raise RefusedError(f"a {type(value).__name__} is not allowed", column)
    if isinstance(value, (int, float)) and (abs(value) > MAX_NUMBER or not math.isfinite(value)):
        raise RefusedError(f"the number is larger than {MAX_NUMBER:g}", column)


def _check_call(node: ast.Call, column: int | None) -> None:
    if isinstance(node.func, ast.Attribute):
        if node.func.attr not in METHODS:
            raise RefusedError(f"the attribute .{node.func.attr} is not allowed", column)
        if node.args or node.keywords:
            raise RefusedError(f".{node.func.attr}() takes nothing", column)
    elif not isinstance(node.func, ast.Name) or node.func.id not in HELPERS:
        name = node.func.id if isinstance(node.func, ast.Name) else "this"
        raise RefusedError(f"{name} is not a function of metric expressions{nearest(name, HELPERS)}", column)
    if any(keyword.arg is None for keyword in node.keywords):
        raise RefusedError("an unpacking (**) is not allowed here", column)


def _check_comprehension(node: ast.GeneratorExp | ast.ListComp, column: int | None) -> None:
    inner = [child for child in ast.walk(node) if isinstance(child, (ast.GeneratorExp, ast.ListComp))]
    if len(node.generators) != 1 or len(inner) > 1:
        raise RefusedError("one loop over one series at a time is allowed", column)
    generator = node.generators[0]
    if generator.is_async:
        raise RefusedError("async is not allowed here", column)
    target = generator.target
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if not all(isinstance(name, ast.Name) for name in names):
        raise RefusedError("the loop's target must be a name or two names", column)
