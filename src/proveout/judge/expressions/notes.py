"""What the reader of a value should know: steps that a range left out, a sentinel among the values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from proveout.judge.expressions.data import View
from proveout.judge.expressions.evaluate import Evaluator
from proveout.judge.expressions.syntax import Parsed
from proveout.judge.expressions.vacuous import sentinel

_RANGED = ("mean", "median")


def notes(parsed: Parsed, evaluator: Evaluator) -> tuple[str, ...]:
    """Notes about every range and series of an evaluated expression."""
    return tuple(dict.fromkeys(_all(parsed, evaluator)))


def _all(parsed: Parsed, evaluator: Evaluator) -> Iterator[str]:
    for node in parsed.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _RANGED:
            yield from _range(node, evaluator)
    for tag, view in evaluator.touched.items():
        marker = sentinel(tag)
        if marker is None:
            continue
        hit = [key for key, value in zip(view.keys, view.values, strict=True) if value == marker]
        if hit:
            yield f"{tag} is {marker} (no valid token) at {len(hit)} of {len(view)} steps"


def _range(call: ast.Call, evaluator: Evaluator) -> Iterator[str]:
    view = evaluator.values.get(call.args[0]) if call.args else None
    if not isinstance(view, View) or not view.stepped or not len(view):
        return
    given: dict[str, Any] = dict(
        zip(("range_start", "range_end"), (evaluator.values.get(a) for a in call.args[1:]), strict=False)
    )
    given |= {k.arg: evaluator.values.get(k.value) for k in call.keywords if k.arg}
    start, end = given.get("range_start", 1), given.get("range_end", 0)
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        return
    steps = [key for key in view.keys if isinstance(key, int)]
    last = steps[-1]
    first, behind = start + (last + 1 if start < 0 else 0), end + (last + 1 if end <= 0 else 0)
    inside = [step for step in steps if first <= step < behind]
    if "range_start" not in given and steps[0] < 1:
        yield f"{call.func.id} leaves out step {steps[0]} of {view.tag}: ranges start at step 1"  # type: ignore[attr-defined]
    dense = behind - max(first, steps[0])
    if inside and (start < 0 or end < 0) and len(inside) < dense:
        where = f"{inside[0]} to {inside[-1]}" if len(inside) > 1 else f"{inside[0]}"
        taken = f"{len(inside)} of {len(view)} values of {view.tag} (step {where})"
        yield f"the range counts steps and takes {taken}"
