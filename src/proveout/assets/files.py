"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from proveout.domain.errors import BlockedError, UsageError


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory beside ``target`` that takes its name when the block ends well, and is removed otherwise.

    Raises UsageError where ``target`` holds anything already: what lies there would be taken for what is made.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError("exists already", where=str(target), remedy="remove it, or name another directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BlockedError(
            f"cannot be written: {error.strerror}", where=str(target), remedy="choose another directory"
        ) from None
    try:
        yield place
        place.chmod(0o755)
        if target.exists():
            target.rmdir()
        place.rename(target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A file beside ``target`` that replaces it when the block ends well, and is removed otherwise."""
    place = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield place
        place.replace(target)
    except OSError as error:
        raise BlockedError(
            f"cannot be written: {error.strerror or error}",
            where=str(target),
            remedy="choose another directory",
        ) from None
    finally:
        with suppress(OSError):
            place.unlink()
