"""JSON documents whose repeated keys must not vanish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proveout.capture.reading import Reading


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its ``(key, value)`` pairs in order, repeated keys included."""


def parse(text: str) -> Any:
    """The document, objects as Pairs; bare NaN and Infinity are read. Raises ValueError, RecursionError."""
    return json.loads(text, object_pairs_hook=Pairs)


def load(path: Path, reading: Reading) -> Any:
    """The document in ``path``, or None with a finding that names the line and byte. Raises OSError."""
    raw = path.read_bytes()
    try:
        return parse(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        reading.note("json.malformed", f"not UTF-8 text: {error.reason}", offset=error.start)
    except json.JSONDecodeError as error:
        reading.note("json.malformed", f"not JSON: {error.msg}", line=error.lineno, offset=error.pos)
    except (RecursionError, ValueError) as error:
        reading.note("json.malformed", f"not readable as JSON: {type(error).__name__}", offset=0)
    return None
