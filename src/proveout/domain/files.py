"""Files that are either whole or absent: written to a temporary name, then renamed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proveout.domain.errors import UsageError

T = TypeVar("T")
_encoder = msgspec.json.Encoder()


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replace ``path`` by ``content`` in one step. Raises OSError with the path where it cannot."""
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` (plain data or msgspec structs) as indented JSON; NaN and infinities become null."""
    write_atomic(path, msgspec.json.format(_encoder.encode(value), indent=2) + b"\n")


def read_json(path: Path, kind: type[T]) -> T:
    """The value of ``kind`` in a JSON file.

    Raises:
        UsageError: the file is absent, unreadable or not of that kind; it names file and place.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"not readable as {kind.__name__}: {error}", where=str(path)) from error
