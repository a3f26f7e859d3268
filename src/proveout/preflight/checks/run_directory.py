"""The run directory can be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from proveout.assets import places
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, blocked


def run(context: PreflightContext) -> Iterator[Finding]:
    """Writes and removes a file in the nearest directory that exists; nothing is left behind."""
    place = places.existing(Path(context.run_dir))
    try:
        if not place.is_dir():
            raise NotADirectoryError(f"{place.name} is a file")
        with tempfile.NamedTemporaryFile(dir=place, prefix=".proveout-probe-") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield blocked(
            "run-directory.writable",
            f"the run directory cannot be written: {error.strerror or error}",
            where=Where(file=str(place)),
            remedy="choose another with --run-dir, or change its owner or mode",
        )


CHECK = Check(
    id="run-directory",
    proves="the run directory, or the directory in which it will be made, takes a file",
    remedy="choose another directory",
    run=run,
)
