"""The values of an evaluated expression in words: each side of each comparison, as it was compared."""

from __future__ import annotations

import ast
from typing import Any

from proveout.judge.expressions.data import Data, View
from proveout.judge.expressions.errors import ExpressionError
from proveout.judge.expressions.evaluate import SYMBOLS, Evaluator


def shown(node: ast.expr, evaluator: Evaluator) -> str:
    """What to print in the Value column.

    One comparison with a constant shows the measured side alone, anything else every side with its sign;
    parts that a short circuit left out are evaluated for the display.
    """
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
        return _value(node.left, evaluator)
    return _full(node, evaluator)


def _full(node: ast.expr, evaluator: Evaluator) -> str:
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        return word.join(
            f"({_full(part, evaluator)})" if isinstance(part, ast.BoolOp) else _full(part, evaluator)
            for part in node.values
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"not ({_full(node.operand, evaluator)})"
    if isinstance(node, ast.Compare):
        words = [_value(node.left, evaluator)]
        for how, side in zip(node.ops, node.comparators, strict=True):
            words += [SYMBOLS[type(how)], _value(side, evaluator)]
        return " ".join(words)
    loop = _loop(node)
    return _quantified(node, loop, evaluator) if loop is not None else _value(node, evaluator)


def _value(node: ast.expr, evaluator: Evaluator) -> str:
    try:
        value = evaluator.values[node] if node in evaluator.values else evaluator.value(node)
    except ExpressionError:
        return "?"
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, View):
        keys = f", {value.keys[0]} to {value.keys[-1]}" if len(value) else ""
        return f"{value.tag} ({len(value)} values{keys})"
    if isinstance(value, Data):
        return f"data ({len(value)} tags)"
    return str(value) if not isinstance(value, list) else f"({', '.join(_text(v) for v in value[:8])})"


def _loop(node: ast.expr) -> ast.GeneratorExp | ast.ListComp | None:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("all", "any")
    if not named or not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    return node.args[0] if isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)) else None


def _quantified(node: ast.expr, loop: ast.GeneratorExp | ast.ListComp, evaluator: Evaluator) -> str:
    if loop not in evaluator.values:
        return _value(node, evaluator)
    results = evaluator.values[loop]
    word = f"{_value(node, evaluator)}: {sum(1 for r in results if r is True)} of {len(results)} hold"
    failing = next((place for place, result in enumerate(results) if result is not True), None)
    if failing is None or loop.generators[0].ifs:
        return word
    items = evaluator.values.get(loop.generators[0].iter)
    whole = list(items.keys) if isinstance(items, View) else list(items) if items is not None else []
    name = ast.unparse(loop.generators[0].target)
    return f"{word}, the first that does not: {name} = {_text(whole[failing])}" if whole else word
