"""What a person asks for by name: ``[LOOP:]LEVELS[/VARIANT]``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from proveout.domain.errors import UsageError

_FORM = re.compile(r"(?:(?P<loop>[\w-]+):)?(?P<levels>[\d,-]+)(?:/(?P<variant>[\w-]+))?\Z")


class Choice(msgspec.Struct, frozen=True):
    """One level that was named; ``loop`` '' means every loop of the plan."""

    loop: str
    level: int
    variant: str = "default"


def parse_choices(words: Iterable[str], flag: str) -> tuple[Choice, ...]:
    """Choices from words such as ``0,4``, ``0-2``, ``verl:2/ep``. Raises UsageError for anything else."""
    found: list[Choice] = []
    for word in words:
        match = _FORM.match(word.strip())
        if not match:
            raise UsageError(
                f"{word!r} names no level",
                where=flag,
                remedy="write [LOOP:]LEVELS[/VARIANT], such as 0,4 or verl:2/ep",
            )
        for part in match["levels"].split(","):
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()) or len(first) > 3 or len(last) > 3:
                raise UsageError(
                    f"{part!r} is no level", where=flag, remedy="levels are numbers, such as 0,6 or 0-2"
                )
            found += [
                Choice(match["loop"] or "", level, match["variant"] or "default")
                for level in range(int(first), int(last or first) + 1)
            ]
    return tuple(dict.fromkeys(found))
