"""Random strings that a pattern matches, made from its syntax tree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_SHOWN = [chr(code) for code in range(32, 127)]
_MORE = (0, 0, 1, 2, 5, 14, 25, 45)
"""How often more than it must a part is repeated: gaps of none and of more than a vector register's bytes."""
_BEFORE = ("", "(WorkerDict pid=3120) ", "[rank3]: ", "2026-05-01 10:11:12,123 ERROR x.py:3 -- ")
_AFTER = ("", "", " and more", ".")
_KINDS = {
    c.CATEGORY_DIGIT: str.isdigit,
    c.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdigit(),
    c.CATEGORY_SPACE: lambda letter: letter == " ",
    c.CATEGORY_NOT_SPACE: lambda letter: letter != " ",
    c.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    c.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


def lines(pattern: str, amount: int, chance: random.Random) -> Iterator[str]:
    """So many lines for a pattern of the catalogue, each with something before and after.

    Most of them match; word boundaries and anchors are not seen to.
    """
    tree = parser.parse(pattern.removeprefix("(?m)").removeprefix("(?i)"))
    for _ in range(amount):
        yield chance.choice(_BEFORE) + _one(tree, chance).replace("\n", " ") + chance.choice(_AFTER)


def _one(tree: Any, chance: random.Random) -> str:
    return "".join(_part(kind, value, chance) for kind, value in tree)


def _part(kind: Any, value: Any, chance: random.Random) -> str:
    if kind is c.LITERAL:
        return chr(value)
    if kind is c.ANY:
        return chance.choice(_SHOWN)
    if kind is c.NOT_LITERAL:
        return chance.choice([letter for letter in _SHOWN if letter != chr(value)])
    if kind is c.IN:
        return chance.choice(_letters(value))
    if kind is c.BRANCH:
        return _one(chance.choice(value[1]), chance)
    if kind is c.SUBPATTERN:
        return _one(value[3], chance)
    if kind in (c.MAX_REPEAT, c.MIN_REPEAT):
        least, most, inner = value
        times = chance.randint(least, max(least, min(most, least + chance.choice(_MORE))))
        return "".join(_one(inner, chance) for _ in range(times))
    return ""


def _letters(parts: Any) -> list[str]:
    found: set[str] = set()
    for kind, value in parts:
        if kind is c.LITERAL:
            found.add(chr(value))
        elif kind is c.RANGE:
            found.update(chr(code) for code in range(value[0], min(value[1], 126) + 1))
        elif kind is c.CATEGORY:
            found.update(letter for letter in _SHOWN if _KINDS[value](letter))
    if parts and parts[0][0] is c.NEGATE:
        found = set(_SHOWN) - found
    return sorted(found - {"\n"}) or ["x"]
