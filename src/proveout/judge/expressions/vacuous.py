"""Checks that no finite data could fail, found by interval arithmetic over what series and helpers return."""

from __future__ import annotations

import ast
import math
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Range(NamedTuple):
    """All values that something can take: ``low <= value <= high``; ``why`` names the source of a bound."""

    low: float = -math.inf
    high: float = math.inf
    why: str = ""


_ANY = Range()
_NOT_NEGATIVE = Range(0.0, math.inf, "it is never negative")
_RESULTS = {
    "ratio_above": Range(0.0, 1.0, "a ratio lies between 0 and 1"),
    "std": _NOT_NEGATIVE,
    "abs": _NOT_NEGATIVE,
    "len": _NOT_NEGATIVE,
    "count": _NOT_NEGATIVE,
}
_KEEPS_RANGE = ("min", "max", "mean", "median", "first", "last", "percentile", "ema", "at", "float")


@cache
def _bounds() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("proveout.judge").joinpath("data/bounds.toml").read_text())


def cannot_fail(tree: ast.expr, config: Mapping[str, Any] | None = None) -> str:
    """Why the check holds for every finite data, or an empty string.

    ``config`` is the resolved configuration with dotted keys: a clamp other than the default stands there.
    """
    return _always(tree, config or {}, True)


def _always(node: ast.expr, config: Mapping[str, Any], wanted: bool) -> str:
    """Why ``node`` is ``wanted`` (True or False) whatever the data is, or an empty string."""
    if isinstance(node, ast.Constant):
        return "it is a constant" if node.value is wanted else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _always(node.operand, config, not wanted)
    if isinstance(node, ast.BoolOp):
        parts = [_always(part, config, wanted) for part in node.values]
        if isinstance(node.op, ast.And) is wanted:
            return _every(parts)
        return _some(parts) or _complementary(node)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        links = [
            _link((left, how, right), config, wanted)
            for left, how, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return _every(links) if wanted else _some(links)
    return ""


def _every(reasons: list[str]) -> str:
    return reasons[0] if all(reasons) else ""


def _some(reasons: list[str]) -> str:
    return next((reason for reason in reasons if reason), "")


def _complementary(node: ast.BoolOp) -> str:
    seen = {ast.dump(part) for part in node.values}
    opposed = any(isinstance(p, ast.UnaryOp) and ast.dump(p.operand) in seen for p in node.values)
    return "one of its parts is the opposite of another" if opposed else ""


def _link(link: tuple[ast.expr, ast.cmpop, ast.expr], config: Mapping[str, Any], wanted: bool) -> str:
    left, how, right = link
    if isinstance(how, ast.NotEq):
        return _link((left, ast.Eq(), right), config, not wanted)
    if isinstance(how, (ast.In, ast.NotIn)):
        return ""
    if type(left) is type(right) and ast.dump(left) == ast.dump(right):
        same = isinstance(how, (ast.Eq, ast.LtE, ast.GtE))
        return "both sides are the same" if same is wanted else ""
    a, b = _range(left, config), _range(right, config)
    why = a.why or b.why or "it compares constants"
    return why if _decided(a, how, b, wanted) else ""


def _decided(a: Range, how: ast.cmpop, b: Range, wanted: bool) -> bool:
    if isinstance(how, ast.Eq):
        return a.low == a.high == b.low == b.high if wanted else a.high < b.low or b.high < a.low
    if isinstance(how, (ast.Gt, ast.GtE)):
        a, b = b, a
    if isinstance(how, (ast.Lt, ast.Gt)):
        return a.high < b.low if wanted else a.low >= b.high
    return a.high <= b.low if wanted else a.low > b.high


def _range(node: ast.expr, config: Mapping[str, Any]) -> Range:
    found = _ANY
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        found = Range(node.value, node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _range(node.operand, config)
        found = Range(-inner.high, -inner.low, inner.why)
    elif isinstance(node, ast.Subscript):
        tag = _tag(node) or _tag(node.value)
        found = _of_tag(tag, config)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in _RESULTS:
            found = _RESULTS[node.func.id]
        elif node.func.id in _KEEPS_RANGE and node.args:
            found = _range(node.args[0], config)
    elif isinstance(node, ast.BinOp):
        found = _arithmetic(node, config)
    return found


def _arithmetic(node: ast.BinOp, config: Mapping[str, Any]) -> Range:
    a, b = _range(node.left, config), _range(node.right, config)
    why = a.why or b.why
    if isinstance(node.op, ast.Add):
        return Range(a.low + b.low, a.high + b.high, why)
    if isinstance(node.op, ast.Sub):
        return Range(a.low - b.high, a.high - b.low, why)
    if isinstance(node.op, ast.Mult) and all(map(math.isfinite, (*a[:2], *b[:2]))):
        corners = [x * y for x in a[:2] for y in b[:2]]
        return Range(min(corners), max(corners), why)
    return _ANY


def _tag(node: ast.expr) -> str:
    named = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "data"
    if named and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _of_tag(tag: str, config: Mapping[str, Any]) -> Range:
    bound = _bounds().get(tag)
    if bound is None:
        return _ANY
    low, high = bound.get("low", -math.inf), bound.get("high", math.inf)
    below, above = _set(config, bound, "low_keys"), _set(config, bound, "high_keys")
    low = low if below is None else 1 - below
    high = high if above is None else 1 + above
    return Range(low, high, f"{tag}: {bound['why']}")


def _set(config: Mapping[str, Any], bound: Mapping[str, Any], keys: str) -> float | None:
    values = (config.get(key) for key in bound.get(keys, ()))
    return next((value for value in values if isinstance(value, (int, float))), None)


def sentinel(tag: str) -> float | None:
    """The value of ``tag`` that means "nothing was measured", or None."""
    bound = _bounds().get(tag, {})
    return bound.get("sentinel")
