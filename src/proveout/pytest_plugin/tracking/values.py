"""Turns what a test tracks into plain JSON data, or says why that cannot be done."""

from __future__ import annotations

import math
from typing import Any

MAX_DEPTH = 32


class NotSerialisableError(TypeError):
    """A tracked value that JSON cannot hold; the message names the metric and the type."""


def plain(metric: str, value: object) -> Any:
    """``value`` as JSON data, a copy, so that a later change of the object changes nothing here.

    Arrays and tensors (whatever has ``tolist``) become numbers or nested lists of numbers, tuples become
    lists, number keys of a mapping become strings. NaN and infinities stay floats.

    Raises NotSerialisableError with the metric's name, and the place inside the value.
    """
    __tracebackhide__ = True
    return _plain(value, f"metric {metric!r}", 0)


def _plain(value: object, where: str, depth: int) -> Any:
    __tracebackhide__ = True
    if depth > MAX_DEPTH:
        raise NotSerialisableError(f"{where}: nested deeper than {MAX_DEPTH} levels, or contains itself")
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case list() | tuple():
            return [_plain(each, f"{where}[{index}]", depth + 1) for index, each in enumerate(value)]
        case dict():
            return {
                _key(key, where): _plain(each, f"{where}[{key!r}]", depth + 1) for key, each in value.items()
            }
    to_list = getattr(value, "tolist", None)
    if callable(to_list) and not isinstance(value, type):
        return _plain(_listed(to_list, value, where), where, depth + 1)
    raise NotSerialisableError(
        f"{where}: a value of type {_type_name(value)} cannot be written as JSON; "
        "track a number, a string, or a list or dict of them"
    )


def _listed(to_list: Any, value: object, where: str) -> object:
    __tracebackhide__ = True
    try:
        return to_list()
    except Exception as error:
        raise NotSerialisableError(
            f"{where}: a value of type {_type_name(value)} gave no plain numbers: {error}"
        ) from error


def _key(key: object, where: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int | float) and not isinstance(key, bool):
        return str(key)
    raise NotSerialisableError(f"{where}: a value of type {_type_name(key)} cannot be a key of a JSON object")


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def split_non_finite(value: Any) -> tuple[Any, Any]:
    """``value`` with None for every NaN and infinity, and what they were as text (None if there are none).

    JSON has no word for them. A number gives ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``; a list or dict
    gives a dict of place to such text.
    """
    found: dict[str, str] = {}
    clean = _without_non_finite(value, "", found)
    return clean, (found.get("") or found or None)


def _without_non_finite(value: Any, where: str, found: dict[str, str]) -> Any:
    match value:
        case float() if not math.isfinite(value):
            found[where] = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return None
        case list():
            return [_without_non_finite(each, f"{where}[{i}]", found) for i, each in enumerate(value)]
        case dict():
            return {key: _without_non_finite(each, f"{where}.{key}", found) for key, each in value.items()}
    return value
