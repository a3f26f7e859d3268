"""Python values as programs print them, read back without running anything.

Dicts, lists, tuples, sets and constants as they stand; an object such as ``Config(a=1)`` as a dict of its
keyword arguments; what is no literal (``<Kind.A: 1>``, a name) as its text.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_SPEAKER = re.compile(r"\((\w+ pid=\d+)(?:, ip=[^)]*)?\) ")
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
_NO_LITERAL = re.compile(r"<[^<>'\"]*(?:'[^']*'[^<>'\"]*)*>")
_MOST_LINES = 50_000
_NUMBERS = {"nan": math.nan, "inf": math.inf}
_CONTINUED = re.compile(r"\s+(?:['\"\[({<\-\d]|(?:None|True|False|nan|inf)\b|[A-Z]\w*\()")
_TOKENS = re.compile(
    r"""(?x: \s | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" | -?\d[\w.+-]*+
    | (?:None|True|False|nan|inf)\b | [\[\](){},:-] )++"""
)
_OPEN, _CLOSE = "([{", ")]}"


def console_lines(path: Path) -> list[tuple[str, str]]:
    """The lines of a log as (speaker, text): the Ray actor that a prefix names, else '', and what it said.

    Raises OSError where the file cannot be read.
    """
    lines = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for raw in file:
            text = _ANSI.sub("", raw).rstrip("\n").rpartition("\r")[2]
            found = _SPEAKER.search(text)
            if found and (found.start() == 0 or "|" in text[: found.start()]):
                lines.append((found[1], _REPEATED.sub("", text[found.end() :])))
            else:
                lines.append(("", text))
    return lines


def value_at(lines: Sequence[tuple[str, str]], start: int, speaker: str, prefix: str = "") -> Any:
    """The value whose text begins at line ``start``, over the lines of one speaker until its brackets close.

    ``prefix`` stands before each of the lines. An actor's standard error may come in between: where all lines
    give no value, those that it cannot go on with are left out. Raises ValueError where it does not close or is no
    value.
    """
    said = [
        line[len(prefix) :]
        for who, line in lines[start : start + _MOST_LINES]
        if who == speaker and line.startswith(prefix)
    ]
    try:
        return _first_of(said)
    except ValueError:
        return _first_of([said[0], *filter(_belongs, said[1:])])


def _belongs(line: str) -> bool:
    """Whether a printed value may go on with this line: one of its own, or a part of one of whole tokens.

    Ray's log monitor forwards what is there of a line when it looks, and the rest as a line of its own.
    """
    return _CONTINUED.match(line) is not None or _TOKENS.fullmatch(line) is not None


def _first_of(said: Sequence[str]) -> Any:
    """The value that these lines begin with."""
    depth, quote = 0, ""
    for count, line in enumerate(said, start=1):
        depth, quote = _nesting(line, depth, quote)
        if depth <= 0:
            return literal("\n".join(said[:count]))
    raise ValueError("the printed value does not end")


def _nesting(text: str, depth: int, quote: str) -> tuple[int, str]:
    skip = False
    for char in text:
        if skip:
            skip = False
        elif quote:
            skip = char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char in _OPEN) - (char in _CLOSE)
    return depth, ""


def literal(text: str) -> Any:
    """The value that ``text`` prints. Raises ValueError for what is none."""
    for attempt in (text, _NO_LITERAL.sub(lambda found: repr(found[0]), text)):
        try:
            return _value(ast.parse(attempt.strip(), mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError):
            continue
    raise ValueError(f"no printed value: {text[:60]!r}")


def _value(node: ast.expr) -> Any:  # noqa: PLR0911 - one return for each form
    match node:
        case ast.Constant():
            return node.value
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {_key(key): _value(value) for key, value in pairs if key is not None}
        case ast.List() | ast.Tuple() | ast.Set():
            return [_value(part) for part in node.elts]
        case ast.Call() if node.keywords or not node.args:
            return {word.arg: _value(word.value) for word in node.keywords if word.arg}
        case ast.Call() if len(node.args) == 1:
            return _value(node.args[0])
        case ast.Name() if node.id in _NUMBERS:
            return _NUMBERS[node.id]
        case ast.UnaryOp(op=ast.USub()) if isinstance(number := _value(node.operand), int | float):
            return -number
        case _:
            return ast.unparse(node)


def _key(node: ast.expr) -> Any:
    value = _value(node)
    return value if isinstance(value, str | int | float | bool) else str(value)
