"""The lines of a console log that hold one of some words, with their numbers, found in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from proveout.domain.evidence import Evidence

_CHUNK = 1 << 20
_LONGEST = 1 << 22
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Line(NamedTuple):
    """One line, or the part of one between carriage returns; ``number`` counts from 1."""

    file: str
    number: int
    text: str


def log_path(evidence: Evidence) -> Path:
    """The captured console: ``evidence.log``, relative to the attempt directory unless absolute."""
    return Path(evidence.attempt_dir) / evidence.log


def scan(path: Path, words: Iterable[str]) -> Iterator[Line]:
    """Lines of ``path`` that hold one of ``words``: escape sequences taken out, redrawn lines split.

    Memory is bounded whatever the file holds: a line longer than 4 MiB is looked at in pieces.

    Raises OSError where the file cannot be read.
    """
    gates = [word.encode() for word in words]
    number = 1
    for block in _blocks(path):
        if any(gate in block for gate in gates):
            for offset, raw in enumerate(block.split(b"\n")):
                if any(gate in raw for gate in gates):
                    for text in _ANSI.sub("", raw.decode("utf-8", "replace")).split("\r"):
                        yield Line(str(path), number + offset, text)
        number += block.count(b"\n")


def _blocks(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            chunk = rest + chunk
            cut = chunk.rfind(b"\n") + 1
            if not cut and len(chunk) >= _LONGEST:
                cut = len(chunk)
            rest = chunk[cut:]
            if cut:
                yield chunk[:cut]
    if rest:
        yield rest
