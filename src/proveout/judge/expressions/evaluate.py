"""Evaluates an allow-listed tree over the data, within a budget of operations and of time."""

from __future__ import annotations

import ast
import math
import operator
import time
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from proveout.judge.expressions.data import Data, View
from proveout.judge.expressions.errors import ExpressionError
from proveout.judge.expressions.helpers import HELPERS, NEEDS_DATA, index, kind, real

MAX_OPERATIONS = 2_000_000
MAX_SECONDS = 5.0
MAX_EXPONENT = 1000

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_EQUALITY: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
COMPARE = {kind: function for kind, (_, function) in (_ORDER | _EQUALITY).items()}
SYMBOLS = {kind: symbol for kind, (symbol, _) in (_ORDER | _EQUALITY).items()} | {
    ast.In: "in",
    ast.NotIn: "not in",
}


def missing(tag: str, data: Data) -> ExpressionError:
    """The error for a tag that the data does not hold, naming the nearest tags."""
    tags = list(data)
    leaf = tag.rsplit("/", 1)[-1]
    near = [t for t in tags if t.rsplit("/", 1)[-1] == leaf] + get_close_matches(tag, tags, n=3, cutoff=0.5)
    known = ", ".join(dict.fromkeys(near[:3])) if near else f"none like it among {len(tags)} tags"
    return ExpressionError(f"{tag!r} is not in the metrics; nearest: {known}")


class Evaluator:
    """One expression's evaluation: values of all parts by node, and the series that were looked at."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.touched: dict[str, View] = {}
        self.values: dict[ast.AST, Any] = {}
        self._left = MAX_OPERATIONS
        self._deadline = time.monotonic() + MAX_SECONDS
        self._bound: dict[str, Any] = {}

    def value(self, node: ast.expr) -> Any:
        """The value of ``node``. Raises ExpressionError, with the column where there is one."""
        self._spend(1)
        try:
            result = _EVALUATE[type(node)](self, node)
        except ExpressionError as error:
            if error.column is None:
                raise ExpressionError(error.what, node.col_offset + 1) from None
            raise
        except ZeroDivisionError:
            raise ExpressionError("division by zero", node.col_offset + 1) from None
        except (TypeError, ValueError, OverflowError) as error:
            raise ExpressionError(str(error), node.col_offset + 1) from None
        if isinstance(result, View):
            self._spend(len(result))
        self.values[node] = result
        return result

    def _spend(self, operations: int) -> None:
        self._left -= operations
        if self._left < 0 or time.monotonic() > self._deadline:
            raise ExpressionError(f"stopped after {MAX_OPERATIONS} operations or {MAX_SECONDS:g} s")

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._bound:
            return self._bound[node.id]
        if node.id == "data":
            return self.data
        raise ExpressionError(f"{node.id} is a function: call it")

    def _subscript(self, node: ast.Subscript) -> Any:
        whole, key = self.value(node.value), self.value(node.slice)
        if isinstance(whole, Data):
            return self._tag(key)
        if isinstance(whole, View):
            return index(whole, key)
        if isinstance(whole, list | tuple) and isinstance(key, int):
            if not -len(whole) <= key < len(whole):
                raise ExpressionError(f"there is no value {key} among {len(whole)}")
            return whole[key]
        raise ExpressionError(f"{kind(whole)} has no parts")

    def _tag(self, tag: Any) -> Any:
        if not isinstance(tag, str):
            raise ExpressionError(f"a tag is a text, not {kind(tag)}")
        if tag not in self.data:
            raise missing(tag, self.data)
        found = self.data.get(tag)
        if isinstance(found, View):
            self.touched[tag] = found
        return found

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func)
        assert isinstance(node.func, ast.Name)  # noqa: S101 - the parser admits nothing else
        name = node.func.id
        arguments = [self.value(argument) for argument in node.args]
        named = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        function = HELPERS[name]
        try:
            return (function(self.data) if name in NEEDS_DATA else function)(*arguments, **named)
        except TypeError as error:
            raise ExpressionError(f"{name}() was called wrongly: {_plain(error)}") from None

    def _method(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, View):
            parts = {"keys": owner.keys, "values": owner.values}
            self._spend(len(owner))
            return (
                list(zip(owner.keys, owner.values, strict=True)) if node.attr == "items" else parts[node.attr]
            )
        if isinstance(owner, Data) and node.attr == "keys":
            return list(owner)
        if isinstance(owner, Data):
            pairs = [(tag, self._tag(tag)) for tag in owner]
            return pairs if node.attr == "items" else [value for _, value in pairs]
        raise ExpressionError(f"{kind(owner)} has no .{node.attr}()")

    def _binary(self, node: ast.BinOp) -> Any:
        left = real(self.value(node.left), "arithmetic")
        right = real(self.value(node.right), "arithmetic")
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        return _ARITHMETIC[type(node.op)](left, right)

    def _unary(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not truth(operand)
        number = real(operand, "a sign")
        return -number if isinstance(node.op, ast.USub) else number

    def _boolean(self, node: ast.BoolOp) -> bool:
        stop = isinstance(node.op, ast.Or)
        return next((stop for part in node.values if truth(self.value(part)) is stop), not stop)

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for how, side in zip(node.ops, node.comparators, strict=True):
            right = self.value(side)
            if not holds(how, left, right):
                return False
            left = right
        return True

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Any:
        return [self.value(part) for part in node.elts]

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp) -> list[Any]:
        loop = node.generators[0]
        outer = dict(self._bound)
        results = []
        try:
            for item in self._items(loop.iter):
                self._bind(loop.target, item)
                if all(truth(self.value(condition)) for condition in loop.ifs):
                    results.append(self.value(node.elt))
        finally:
            self._bound = outer
        return results

    def _items(self, node: ast.expr) -> list[Any]:
        whole = self.value(node)
        if isinstance(whole, View):
            return list(whole.keys)
        if isinstance(whole, Data):
            return list(whole)
        if isinstance(whole, list | tuple):
            return list(whole)
        raise ExpressionError(f"{kind(whole)} has no parts to go through")

    def _bind(self, target: ast.expr, item: Any) -> None:
        if isinstance(target, ast.Name):
            self._bound[target.id] = item
            return
        assert isinstance(target, ast.Tuple | ast.List)  # noqa: S101 - the parser admits nothing else
        if not isinstance(item, tuple) or len(item) != len(target.elts):
            raise ExpressionError(f"{len(target.elts)} names for {kind(item)}", target.col_offset + 1)
        for name, part in zip(target.elts, item, strict=True):
            self._bind(name, part)


def truth(value: Any) -> bool:
    """A truth value. Raises ExpressionError for what compares nothing."""
    if not isinstance(value, bool):
        raise ExpressionError(f"{kind(value)} compares nothing: write a comparison such as < or ==")
    return value


def holds(how: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether ``left how right``. Raises ExpressionError for what cannot be compared."""
    if isinstance(how, ast.In | ast.NotIn):
        if isinstance(right, View):
            inside = str(left) in right.index()
        elif isinstance(right, Data | list | tuple):
            inside = left in right
        else:
            raise ExpressionError(f"nothing can be 'in' {kind(right)}")
        return inside is isinstance(how, ast.In)
    for side in (left, right):
        if isinstance(side, View | Data):
            raise ExpressionError(f"{kind(side)} cannot be compared: use min, max, mean, last ... of it")
    if type(how) in _EQUALITY:
        return _EQUALITY[type(how)][1](left, right)
    return _ORDER[type(how)][1](real(left, "a comparison"), real(right, "a comparison"))


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > MAX_EXPONENT:
        raise ExpressionError(f"the exponent {exponent!r} is larger than {MAX_EXPONENT}")
    result = math.pow(float(base), float(exponent))
    if not math.isfinite(result):
        raise ExpressionError("the power overflows")
    return result


def _plain(error: TypeError) -> str:
    return str(error).replace("<lambda>()", "it").lstrip("_")


_EVALUATE: dict[type[ast.expr], Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Subscript: Evaluator._subscript,
    ast.Call: Evaluator._call,
    ast.BinOp: Evaluator._binary,
    ast.UnaryOp: Evaluator._unary,
    ast.BoolOp: Evaluator._boolean,
    ast.Compare: Evaluator._compare,
    ast.Tuple: Evaluator._sequence,
    ast.List: Evaluator._sequence,
    ast.Set: Evaluator._sequence,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.ListComp: Evaluator._comprehension,
}
