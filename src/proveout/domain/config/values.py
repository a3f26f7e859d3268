"""Override values in the grammar of Hydra's command line, as far as the stacks use it."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*)\Z")
_FLOAT = re.compile(
    r"[+-]?(?:(?:\d[\d_]*)?\.\d[\d_]*|\d[\d_]*\.?)(?:[eE][+-]?\d+)?\Z|[+-]?(?:inf|nan)\Z", re.IGNORECASE
)
_INTERPOLATION = re.compile(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_NOT_UNQUOTED = re.compile(r"[^\w\s/\-\\+.$%*@?|:]", re.ASCII)
_ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_DEEPEST = 64


class OverrideValueError(ValueError):
    """Why a value does not parse."""


def parse_value(text: str) -> Any:
    """The value that ``text`` stands for: null, bool, int, float, list, dict or str.

    An interpolation (``${...}``) stays a string. Raises OverrideValueError for unbalanced brackets or
    quotes, and for a comma outside brackets, which Hydra takes for a sweep.
    """
    parts = _split(text, ",")
    if len(parts) > 1:
        raise OverrideValueError(
            "a comma outside brackets and quotes asks for a sweep of several runs; quote the value"
        )
    return _one(text.strip(), 0)


def _one(text: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise OverrideValueError("is nested too deeply")
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1].replace("\\" + text[0], text[0])
    if text.startswith("[") and text.endswith("]"):
        return [_one(item.strip(), depth + 1) for item in _items(text[1:-1])]
    if text.startswith("{") and text.endswith("}"):
        return dict(_pair(item, depth + 1) for item in _items(text[1:-1]))
    if wrong := _NOT_UNQUOTED.search(_ESCAPED.sub("", _INTERPOLATION.sub("", text))):
        raise OverrideValueError(f"{wrong[0]} may only stand in a quoted value")
    return _ESCAPED.sub(r"\1", scalar(text)) if "\\" in text else scalar(text)


def scalar(text: str) -> Any:
    """An unquoted scalar: null, true, false, a number, or the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.match(text):
        return int(text.replace("_", ""))
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    return text


def _pair(item: str, depth: int) -> tuple[str, Any]:
    key, colon, value = item.partition(":")
    if not colon:
        raise OverrideValueError(f"{item.strip()!r} is no key:value pair")
    return key.strip().strip("'\""), _one(value.strip(), depth)


def _items(inner: str) -> list[str]:
    return [item for item in _split(inner, ",") if item.strip()]


def _split(text: str, separator: str) -> list[str]:
    """``text`` cut at ``separator`` outside quotes and brackets."""
    parts: list[str] = []
    stack: list[str] = []
    start, quote, escaped = 0, "", False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and (at == 0 or text[at - 1] in "[{(,:= \t" or stack):
            quote = char
        elif char in _CLOSING:
            stack.append(_CLOSING[char])
        elif stack and char == stack[-1]:
            stack.pop()
        elif char == separator and not stack:
            parts.append(text[start:at])
            start = at + 1
    if quote:
        raise OverrideValueError(f"a quote {quote} is not closed")
    if stack:
        raise OverrideValueError(f"a bracket is not closed: {stack[-1]!r} is missing")
    return [*parts, text[start:]]
