"""Looking up keys of a composed configuration, following its ``${...}`` references."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

MISSING = "???"
_INNERMOST = re.compile(r"\$\{([^${}]*)\}")
_MOST_STEPS = 64


class Unresolved(str):
    """A value that needs something outside the files (a resolver, the environment, a missing key)."""

    __slots__ = ()


ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT", "__bool__": lambda self: False})()


def raw(config: Any, key: str) -> Any:
    """The node at dotted ``key`` as it stands, or ABSENT. A number indexes a list."""
    node = config
    for part in key.split("."):
        if isinstance(node, Mapping) and part in node:
            node = node[part]
        elif (
            isinstance(node, Sequence)
            and not isinstance(node, str)
            and part.isdigit()
            and int(part) < len(node)
        ):
            node = node[int(part)]
        else:
            return ABSENT
    return node


def lookup(config: Mapping[str, Any], key: str) -> Any:
    """The value at dotted ``key`` with references followed: a value, Unresolved text, or ABSENT.

    References through a node that is itself a reference (``${a}`` where a is a mapping) are followed too.
    """
    return _resolve(config, key, _through(config, key), _MOST_STEPS)


def _through(config: Mapping[str, Any], key: str) -> Any:
    node: Any = config
    walked: list[str] = []
    for part in key.split("."):
        if isinstance(node, str):
            node = _resolve(config, ".".join(walked), node, _MOST_STEPS)
        node = raw(node, part)
        if node is ABSENT:
            return ABSENT
        walked.append(part)
    return node


def _resolve(config: Mapping[str, Any], at: str, value: Any, budget: int) -> Any:
    while isinstance(value, str) and (match := _INNERMOST.search(value)):
        budget -= 1
        if budget <= 0:
            return Unresolved(value)
        result = _reference(config, at, match[1], budget)
        if result is ABSENT or isinstance(result, Unresolved):
            return Unresolved(value)
        if match.span() == (0, len(value)):
            value = result
        elif isinstance(result, Mapping | list):
            return Unresolved(value)
        else:
            value = (
                value[: match.start()] + ("null" if result is None else str(result)) + value[match.end() :]
            )
    return value


def _reference(config: Mapping[str, Any], at: str, inner: str, budget: int) -> Any:
    name, colon, arguments = inner.partition(":")
    if colon:
        return _call(config, name.strip(), [word.strip() for word in arguments.split(",")], budget)
    target = _absolute(at, inner.strip())
    return _resolve(config, target, _through(config, target), budget)


def _absolute(at: str, reference: str) -> str:
    dots = len(reference) - len(reference.lstrip("."))
    if not dots:
        return reference
    parents = at.split(".")[:-dots]
    return ".".join([*parents, reference[dots:]])


def _call(config: Mapping[str, Any], name: str, words: list[str], budget: int) -> Any:
    from proveout.domain.config.values import OverrideValueError, parse_value, scalar

    if name == "oc.select":
        found = _resolve(config, words[0], _through(config, words[0]), budget)
        if found is not ABSENT:
            return found
        try:
            return parse_value(",".join(words[1:])) if len(words) > 1 else None
        except OverrideValueError:
            return Unresolved(words[1])
    numbers = [scalar(word) for word in words]
    if len(numbers) == 2 and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        a, b = numbers
        if name == "div":
            return a / b if b else Unresolved(f"{a}/{b}")
        simple = {"add": lambda: a + b, "mul": lambda: a * b, "max": lambda: max(a, b)}
        if name in simple:
            return simple[name]()
    return Unresolved(f"${{{name}:{','.join(words)}}}")
