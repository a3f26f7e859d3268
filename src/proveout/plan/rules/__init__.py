"""Rules as data: which levels a changed path, or a word in a changed line, asks for."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.tree import parse_yaml

Levels = dict[str, list[int]]
Variants = dict[str, dict[int, list[str]]]


class PathRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of one role and the levels that a change to them asks for; the first rule that matches decides.

    ``tests`` are the role's own tests to run first; ``family`` marks paths of one model family.
    """

    id: str
    paths: tuple[str, ...]
    reason: str
    levels: Levels = {}
    variants: Variants = {}
    tests: tuple[str, ...] = ()
    family: bool = False


class SymbolRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words in changed lines and the levels that they ask for, beside what the path asks for."""

    id: str
    words: tuple[str, ...]
    reason: str
    levels: Levels = {}
    variants: Variants = {}

    def first_match(self, lines: tuple[str, ...]) -> str:
        """The first changed line that holds one of the words, or ''. Comment lines do not count."""
        pattern = _any_of(self.words)
        return next(
            (line for line in lines if not line.lstrip().startswith("#") and pattern.search(line)), ""
        )


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{word})" for word in words))


@cache
def path_rules(role: str) -> tuple[PathRule, ...]:
    """The path rules of one role, in order."""
    return msgspec.convert(_data(f"{role}.yaml"), tuple[PathRule, ...])


@cache
def symbol_rules() -> tuple[SymbolRule, ...]:
    """The rules on changed lines."""
    return msgspec.convert(_data("symbols.yaml"), tuple[SymbolRule, ...])


def _data(name: str) -> Any:
    return parse_yaml((files(__package__) / name).read_text())


def rule_for(role: str, path: str) -> PathRule | None:
    """The first rule of ``role`` that matches ``path``, or None."""
    return next((rule for rule in path_rules(role) if _globs(rule.paths).fullmatch(path)), None)


@cache
def _globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_glob(pattern) for pattern in patterns), re.DOTALL)


def _glob(pattern: str) -> str:
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("**", at):
            out, at = out + ".*", at + 2
        elif pattern[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif pattern[at] == "{":
            end = pattern.index("}", at)
            choices = "|".join(_glob(choice) for choice in pattern[at + 1 : end].split(","))
            out, at = f"{out}(?:{choices})", end + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return out
