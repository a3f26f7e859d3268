"""Which steps of a series break a comparison that is false."""

from __future__ import annotations

import ast

from proveout.judge.expressions.data import View
from proveout.judge.expressions.evaluate import COMPARE, Evaluator
from proveout.judge.expressions.syntax import Parsed


def breaking(parsed: Parsed, evaluator: Evaluator) -> dict[str, tuple[int, ...]]:
    """By tag, the steps whose own value does not satisfy a false comparison with a constant."""
    found: dict[str, tuple[int, ...]] = {}
    for node in parsed.nodes:
        if not isinstance(node, ast.Compare) or evaluator.values.get(node) is not False:
            continue
        sides = [node.left, *node.comparators]
        for left, how, right in zip(sides, node.ops, sides[1:], strict=False):
            found |= _link(left, how, right, evaluator)
    return found


def _link(
    left: ast.expr, how: ast.cmpop, right: ast.expr, evaluator: Evaluator
) -> dict[str, tuple[int, ...]]:
    if isinstance(how, (ast.In, ast.NotIn)):
        return {}
    for side, limit, swapped in ((left, right, False), (right, left, True)):
        value = evaluator.values.get(limit)
        view = _view(side, evaluator)
        if view is None or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        compare = COMPARE[type(how)]
        pairs = zip(view.keys, view.values, strict=True)
        if swapped:
            steps = [key for key, v in pairs if isinstance(key, int) and not compare(value, v)]
        else:
            steps = [key for key, v in pairs if isinstance(key, int) and not compare(v, value)]
        return {view.tag: tuple(steps)}
    return {}


def _view(node: ast.expr, evaluator: Evaluator) -> View | None:
    if isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(evaluator.values.get(node.value), View):
        whole, key = evaluator.values[node.value], evaluator.values.get(node.slice)
        value = whole.index().get(str(key))
        return None if value is None else View(whole.tag, [int(str(key))], [value]) if whole.stepped else None
    found = evaluator.values.get(node)
    return found if isinstance(found, View) else None
