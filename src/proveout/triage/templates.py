"""Parts of a log that only repeat, with other numbers, what was seen to match no rule: they need no second look.

A line without its digits is its template. A template that no rule matches, with every rule widened so that digits
do not matter (``relax``), can be left out wherever it comes again: a training log says the same few hundred things
over and over. Where only some rules match the template, the line is searched for those alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from proveout.triage.relax import without_digits

Match = Callable[[bytes], Any]

_DIGITS = b"0123456789"
_MEMORY = 256 << 20
MOST = 20_000
GROUPS = 64
LONGEST = 1 << 14
PATIENCE = 8
REST = 32
SHORTEST = 6
_NUMBER = re.compile(rb"\d+")


class Searches:
    """Searches for sets of patterns, exact and widened; built at first use and kept for every log."""

    def __init__(self, patterns: Sequence[str], exact: Match) -> None:
        self._patterns = patterns
        self.exact = exact
        self.wide = search([without_digits(pattern) for pattern in patterns])
        self._some: dict[tuple[int, ...], Match] = {}

    def some(self, ids: tuple[int, ...]) -> Match:
        """The search for the patterns of ``ids`` alone."""
        found = self._some.get(ids)
        if found is None:
            if len(self._some) >= GROUPS:
                return self.exact
            found = self._some[ids] = search([self._patterns[index] for index in ids])
        return found


class Loud(NamedTuple):
    """A template that some rules may match: which ones, and a part by which its lines are found."""

    ids: tuple[int, ...]
    template: bytes
    anchor: bytes


class Templates:
    """What one pass over one log has seen: ``hit(piece)`` says whether a rule may match in a piece of whole lines."""

    def __init__(self, searches: Searches) -> None:
        self._searches = searches
        self._known: dict[bytes, Loud | None] = {}
        self._misses = 0
        self._rest = 0

    def hit(self, piece: bytes) -> bool:
        """Whether any rule matches; never False where one does."""
        if self._rest:
            self._rest -= 1
            return bool(self._searches.exact(piece))
        lines = piece.translate(None, _DIGITS).split(b"\n")
        try:
            which = list(map(self._known.__getitem__, lines))
            self._misses = 0
        except KeyError:
            if not self._learn(piece, lines):
                return bool(self._searches.exact(piece))
            which = list(map(self._known.__getitem__, lines))
        doubtful = list(filter(None, which))
        return any(self._search_for(loud, doubtful.count(loud), piece, lines) for loud in set(doubtful))

    def _search_for(self, loud: Loud, count: int, piece: bytes, lines: list[bytes]) -> bool:
        """Whether a rule matches one of the ``count`` lines of ``piece`` that have this template."""
        found = _with_anchor(piece, loud)
        if len(found) != count:
            pairs = zip(piece.split(b"\n"), lines, strict=True)
            found = [raw for raw, line in pairs if line == loud.template]
        return bool(self._searches.some(loud.ids)(b"\n".join(found)))

    def _learn(self, piece: bytes, lines: list[bytes]) -> bool:
        """Judge templates that were not seen before; False where the piece is better searched directly."""
        pairs = zip(lines, piece.split(b"\n"), strict=True)
        new = {line: raw for line, raw in pairs if line not in self._known}
        self._misses = self._misses + 1 if sum(map(len, new)) * 3 > len(piece) else 0
        if self._misses > PATIENCE:
            self._misses, self._rest = 0, REST
            return False
        if max(map(len, new)) > LONGEST:
            return False
        if len(self._known) > MOST:
            self._known.clear()
            return False
        if not self._searches.wide(b"\n".join(new)):
            self._known.update(dict.fromkeys(new))
            return True
        for line, raw in new.items():
            ids = self._searches.wide(line)
            self._known[line] = Loud(tuple(sorted(ids)), line, _anchor(raw)) if ids else None
        return True


def _anchor(raw: bytes) -> bytes:
    """The longest part of a line without a digit."""
    return max(_NUMBER.split(raw), key=len)


def _with_anchor(piece: bytes, loud: Loud) -> list[bytes]:
    """The lines of a template that hold its anchor where it was first seen."""
    found: list[bytes] = []
    at = piece.find(loud.anchor) if len(loud.anchor) >= SHORTEST else -1
    while at >= 0:
        end = piece.find(b"\n", at)
        end = end if end >= 0 else len(piece)
        raw = piece[piece.rfind(b"\n", 0, at) + 1 : end]
        if raw.translate(None, _DIGITS) == loud.template:
            found.append(raw)
        at = piece.find(loud.anchor, end)
    return found


def search(patterns: Sequence[str]) -> Match:
    """One search for ``patterns`` (RE2, for single lines); it gives the indices of those that match."""
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    found = re2.Set.SearchSet(options)
    for pattern in patterns:
        found.Add("(?m)" + pattern.removeprefix("(?m)"))
    found.Compile()
    match: Match = found.Match
    return match
