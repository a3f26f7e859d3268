"""From a rule's pattern to one that also matches what is left of a line when its digits are taken out."""

from __future__ import annotations

import re._constants as c  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_SPECIAL = frozenset(r"\.^$*+?{}[]|()")
_CATEGORIES = {
    c.CATEGORY_DIGIT: (r"\d", True),
    c.CATEGORY_NOT_DIGIT: (r"\D", False),
    c.CATEGORY_SPACE: (r"[ \t]", False),
    c.CATEGORY_NOT_SPACE: (r"\S", True),
    c.CATEGORY_WORD: (r"\w", True),
    c.CATEGORY_NOT_WORD: (r"\W", False),
}


def without_digits(pattern: str) -> str:
    """A pattern that matches ``line`` without its digits whenever ``pattern`` matches ``line``.

    Whatever may match a digit may also match nothing; word boundaries are dropped, because digits make them.
    The result is RE2, for one line; it matches more than the pattern, never less.
    """
    flags = "(?i)" if "(?i" in pattern else ""
    return flags + _sequence(parser.parse(pattern))


def _sequence(tree: Any) -> str:
    return "".join(_node(op, argument) for op, argument in tree)


def _node(op: Any, argument: Any) -> str:
    if op is c.LITERAL:
        return "" if chr(argument).isdigit() else _escape(argument)
    if op is c.IN:
        return _class(argument)
    if op in (c.ANY, c.NOT_LITERAL):
        return ".?" if op is c.ANY else f"(?:[^{_escape(argument)}\\n])?"
    if op is c.SUBPATTERN:
        return f"(?:{_sequence(argument[3])})"
    if op is c.BRANCH:
        return "(?:" + "|".join(_sequence(branch) for branch in argument[1]) + ")"
    if op in (c.MAX_REPEAT, c.MIN_REPEAT):
        low, high, inner = argument
        most = "" if high is c.MAXREPEAT else high
        return _repeat(_sequence(inner), low, most)
    if op is c.AT:
        return {c.AT_BEGINNING: "^", c.AT_END: "$"}.get(argument, "")
    raise ValueError(f"{op} has no counterpart")


def _repeat(inner: str, low: int, most: int | str) -> str:
    if not inner:
        return ""
    if most == "":
        return f"(?:{inner})*" if low == 0 else f"(?:{inner})+"
    return f"(?:{inner}){{{min(low, 1)},{most}}}" if most else ""


def _class(items: Any) -> str:
    negated = items[0][0] is c.NEGATE
    parts, digits = "", False
    for op, argument in items[1:] if negated else items:
        if op is c.LITERAL:
            parts += _escape(argument)
            digits = digits or chr(argument).isdigit()
        elif op is c.RANGE:
            low, high = argument
            parts += f"{_escape(low)}-{_escape(high)}"
            digits = digits or (low <= ord("9") and high >= ord("0"))
        else:
            text, has = _CATEGORIES[argument]
            parts += " \\t" if text == r"[ \t]" else text
            digits = digits or has
    if negated:
        return f"(?:[^{parts}\\n])?"
    return f"(?:[{parts}])?" if digits else f"[{parts}]"


def _escape(code: int) -> str:
    char = chr(code)
    if char == "\n":
        return r"\n"
    return "\\" + char if char in _SPECIAL or char == "-" else char
