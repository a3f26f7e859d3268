"""One check from text to outcome, with its series searched for NaN and its power to fail questioned."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proveout.judge.expressions.data import Data, View
from proveout.judge.expressions.errors import ExpressionError, RefusedError
from proveout.judge.expressions.evaluate import Evaluator, truth
from proveout.judge.expressions.notes import notes
from proveout.judge.expressions.offending import breaking
from proveout.judge.expressions.show import shown
from proveout.judge.expressions.syntax import Parsed, parse
from proveout.judge.expressions.vacuous import cannot_fail


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one check came to.

    ``value`` is what was compared (``N/A`` where nothing could be); ``message`` says why it failed;
    ``vacuous`` why it could not have failed; ``notes`` what to know about the value; ``series`` are the tags
    that were judged and ``offending`` the steps at fault, by tag. ``non_finite``: a series held NaN or
    infinity; ``refused``: the expression was not evaluated at all.
    """

    check: str
    passed: bool
    value: str = "N/A"
    message: str = ""
    vacuous: str = ""
    notes: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    offending: dict[str, tuple[int, ...]] = {}
    non_finite: bool = False
    refused: bool = False


def check_all(
    data: Data, checks: Iterable[str], config: Mapping[str, Any] | None = None
) -> tuple[Outcome, ...]:
    """The outcome of every check, in order. Never raises for what a check or the data holds."""
    return tuple(check_one(data, text, config) for text in checks)


def check_one(data: Data, text: str, config: Mapping[str, Any] | None = None) -> Outcome:
    """The outcome of one check.

    It fails when it is false, compares nothing, meets an error, or when any series that it names holds a NaN
    or an infinity at any step, whatever its value says.
    """
    try:
        parsed = parse(text)
    except RefusedError as error:
        return Outcome(check=text, passed=False, message=str(error), refused=True)
    tree, evaluator = parsed.tree, Evaluator(data)
    try:
        holds, problem = truth(evaluator.value(tree)), ""
    except ExpressionError as error:
        holds, problem = False, str(error)
    value = shown(tree, evaluator) if not problem or tree in evaluator.values else "N/A"
    judged = _judged(parsed, data) | evaluator.touched
    bad = {tag: view.non_finite() for tag, view in judged.items() if view.non_finite()}
    empty = [tag for tag, view in judged.items() if not len(view)]
    if bad:
        problem = "; ".join(f"{tag} is not finite at {_steps(steps)}" for tag, steps in bad.items())
    elif empty and not problem:
        problem = f"{', '.join(empty)} holds no value"
    elif not problem and not holds:
        problem = "condition evaluated to False"
    offending = {tag: tuple(s for s in steps if isinstance(s, int)) for tag, steps in bad.items()}
    if problem:
        offending = breaking(parsed, evaluator) | offending
    return Outcome(
        check=text,
        passed=not problem,
        value=value,
        message=problem,
        vacuous=cannot_fail(tree, config),
        notes=notes(parsed, evaluator),
        series=tuple(judged),
        offending=offending,
        non_finite=bool(bad),
    )


def _judged(parsed: Parsed, data: Data) -> dict[str, View]:
    tags = (
        str(node.slice.value)
        for node in parsed.nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "data"
        and isinstance(node.slice, ast.Constant)
    )
    found = {tag: data.get(tag) for tag in tags if tag in data}
    return {tag: view for tag, view in found.items() if isinstance(view, View)}


def _steps(keys: list[int | str]) -> str:
    shown_keys = ", ".join(map(str, keys[:8])) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    return f"step{'s' if len(keys) > 1 else ''} {shown_keys}"
