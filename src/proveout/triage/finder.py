"""Which patterns of a set match somewhere in a piece of a log: Hyperscan where it is ready, else RE2.

Both look for all patterns in one pass over the bytes. Hyperscan is twice as fast and starts at once, but compiling
for it takes seconds; what it compiled is kept in the user's cache directory. RE2 is ready in a tenth of a second.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from proveout.triage import cache

Find = Callable[[bytes], Sequence[int]]
Examples = Sequence[tuple[int, str]]
"""Lines that a pattern, named by its index, must find."""

_MEMORY = 256 << 20
_KIND = "finder"


class _Kept(msgspec.Struct, frozen=True):
    """A compiled database, and the indices of the patterns that Hyperscan did not take or that missed an example."""

    database: bytes
    refused: tuple[int, ...]


def plain(patterns: Sequence[str]) -> Find:
    """A search with RE2: the indices of the patterns that match, in no order."""
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    found = re2.Set.SearchSet(options)
    for pattern in patterns:
        found.Add(pattern.encode())
    found.Compile()
    match = found.Match

    def find(piece: bytes) -> Sequence[int]:
        return match(piece) or ()

    return find


def kept(patterns: Sequence[str], examples: Examples = ()) -> Find | None:
    """A search with what Hyperscan compiled for the same before; None where nothing usable is kept."""
    engine = _engine()
    data = cache.read(_KIND, _key(patterns, engine, examples)) if engine else None
    if data is None:
        return None
    try:
        return _search(engine, msgspec.msgpack.decode(data, type=_Kept), patterns)
    except (msgspec.MsgspecError, engine.error):
        return None


def compiled(patterns: Sequence[str], examples: Examples = ()) -> Find | None:
    """A search with Hyperscan, compiled now and kept for the next time; None where there is no Hyperscan.

    Where a pattern does not find one of its ``examples``, RE2 searches for it.
    """
    engine = _engine()
    if engine is None:
        return None
    made = _made(engine, patterns, ())
    if made is not None:
        found = _search(engine, made, patterns)
        missed = {index for index, line in examples if index not in found(line.encode())}
        made = _made(engine, patterns, tuple(sorted(missed))) if missed else made
    if made is None:
        return None
    cache.write(_KIND, _key(patterns, engine, examples), msgspec.msgpack.encode(made))
    return _search(engine, made, patterns)


def _made(engine: Any, patterns: Sequence[str], refused: tuple[int, ...]) -> _Kept | None:
    """The patterns compiled, without ``refused`` and without what Hyperscan does not take; None where that is all."""
    rest = [index for index in range(len(patterns)) if index not in refused]
    try:
        return _Kept(_compile(engine, patterns, rest), refused)
    except engine.error:
        more = tuple(index for index in rest if not _taken(engine, patterns, index))
    try:
        rest = [index for index in rest if index not in more]
        return _Kept(_compile(engine, patterns, rest), tuple(sorted({*refused, *more})))
    except engine.error:
        return None


def _engine() -> Any:
    try:
        import hyperscan
    except ImportError:
        return None
    return hyperscan


def _key(patterns: Sequence[str], engine: Any, examples: Examples) -> str:
    lines = (f"{index}\0{line}" for index, line in examples)
    text = "\0".join((getattr(engine, "__version__", ""), *patterns, *lines))
    return hashlib.sha256(text.encode()).hexdigest()


def _compile(engine: Any, patterns: Sequence[str], which: Sequence[int]) -> bytes:
    flags = engine.HS_FLAG_MULTILINE | engine.HS_FLAG_SINGLEMATCH | engine.HS_FLAG_ALLOWEMPTY
    database = engine.Database()
    database.compile(
        expressions=[patterns[index].encode() for index in which],
        ids=list(which),
        elements=len(which),
        flags=[flags] * len(which),
    )
    data: bytes = engine.dumpb(database)
    return data


def _taken(engine: Any, patterns: Sequence[str], index: int) -> bool:
    try:
        _compile(engine, patterns, [index])
    except engine.error:
        return False
    return True


def _search(engine: Any, made: _Kept, patterns: Sequence[str]) -> Find:
    database = engine.loadb(made.database, engine.HS_MODE_BLOCK)
    rest = plain([patterns[index] for index in made.refused]) if made.refused else None
    own = threading.local()

    def find(piece: bytes) -> Sequence[int]:
        if not hasattr(own, "scratch"):
            own.scratch = engine.Scratch(database)
        found: list[int] = []

        def note(index: int, *_: object) -> None:
            found.append(index)

        database.scan(piece, match_event_handler=note, scratch=own.scratch)
        if rest is not None:
            found += [made.refused[index] for index in rest(piece)]
        return found

    return find
