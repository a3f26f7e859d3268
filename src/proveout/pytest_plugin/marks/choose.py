"""The rule by which declared marks decide what runs; pure, so that it can be read in one place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from proveout.pytest_plugin.marks.declared import Mark

_WORD = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = {"and", "or", "not", "True", "False", "None"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user asked for: the marks whose flag was given, and the names that ``-m`` mentions.

    A mark that ``-m`` mentions is the user's own affair; all other declared marks keep their rule.
    """

    marks: tuple[Mark, ...]
    given: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()

    @property
    def only(self) -> list[Mark]:
        """The marks whose ``only`` flag was given."""
        return [mark for mark in self.marks if mark.only and mark.name in self.given]

    def reason_to_leave_out(self, carried: Collection[str]) -> str:
        """Why a test with these marks does not run, or an empty string when it does."""
        only = [mark.name for mark in self.only]
        for mark in self.marks:
            if mark.flag and mark.name in carried and mark.name not in self.given | self.mentioned:
                return f"carry the mark {mark.name} (add {mark.flag})"
        if only and not any(name in carried for name in only):
            return f"do not carry the mark {only[0]} ({self.only[0].only} was given)"
        return ""

    def exclusive(self, carried: Collection[str]) -> list[str]:
        """The exclusive marks among these: with more than one of them, no configuration runs the test."""
        return [mark.name for mark in self.marks if mark.only and mark.name in carried]

    def comes_first(self, carried: Collection[str]) -> bool:
        """Whether a test with these marks runs before others."""
        return any(mark.first and mark.name in carried for mark in self.marks)


def names_in(expression: str) -> frozenset[str]:
    """The marks that a ``-m`` expression mentions."""
    return frozenset(_WORD.findall(expression)) - _OPERATORS


def named_by(test: Sequence[str], argument: Sequence[str]) -> bool:
    """Whether a command line argument names a test: both as file, then class and function names.

    ``test_a`` names ``test_a[1]`` too, and a class names its methods. A file alone names no test.
    """
    if len(argument) < 2 or len(test) < len(argument):
        return False
    *before, last = argument
    place = test[len(before)]
    return list(test[: len(before)]) == before and (place == last or place.partition("[")[0] == last)
