"""Console lines as a reader wants them: no colours, no Ray prefix, carriage returns as line ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CHUNK = 1 << 18
LONGEST = 1 << 20
_ENDS = re.compile(rb"[\r\n]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_RAY = re.compile(r"^\s*\([^()\n]{1,200}? pid=\d+(?:, ip=[^()\s]+)?\)\s?")
_REPEATED = re.compile(r"\[repeated \d+x across cluster\]")


class Line(NamedTuple):
    """One piece of text that ends with a line feed or a carriage return.

    ``number`` counts line feeds from 1, as an editor does; ``ended`` is False for a last piece without an
    end; ``nested`` says that it moves the cursor up again, as a progress bar below another one does.
    """

    number: int
    text: str
    ended: bool
    nested: bool = False


def lines(path: Path) -> Iterator[Line]:
    """The cleaned lines of a console log. A line is cut at 1 MiB. Raises OSError."""
    number = 1
    rest = b""
    dropping = False
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            data = rest + chunk
            pos = 0
            for end in _ENDS.finditer(data):
                if not dropping and end.start() > pos:
                    raw = data[pos : end.start()]
                    yield Line(number, clean(raw), True, b"\x1b[A" in raw)
                dropping = False
                pos = end.end()
                number += end[0] == b"\n"
            rest = b"" if dropping else data[pos:]
            if len(rest) > LONGEST:
                yield Line(number, clean(rest[:LONGEST]), False)
                rest, dropping = b"", True
    if rest:
        yield Line(number, clean(rest), False, b"\x1b[A" in rest)


def clean(raw: bytes) -> str:
    """The text of a line without escape sequences, Ray's process prefix and its note of repeated lines."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if " pid=" in text:
        text = _RAY.sub("", text)
    if "x across cluster]" in text:
        text = _REPEATED.split(text, maxsplit=1)[0].rstrip()
    return text
