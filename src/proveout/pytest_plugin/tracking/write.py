"""Puts a results file into place: whole, or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from proveout.pytest_plugin.tracking.layout import DATED_SUFFIX, ResultsLayout


def write_results(
    layout: ResultsLayout, stamp: str, document: dict[str, Any], *, latest: bool = True
) -> Path:
    """Write the dated file ``stamp`` (never over another session's: a number is added) and the latest one.

    Returns the dated file. Raises OSError where the directory cannot be written; nothing is then half there.
    """
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    layout.dated.mkdir(parents=True, exist_ok=True)
    dated = _place_new(text, layout.dated, stamp)
    if latest:
        _temporary(text, layout.latest.parent).replace(layout.latest)
    return dated


def _place_new(text: str, directory: Path, stamp: str) -> Path:
    temporary = _temporary(text, directory)
    try:
        number = 0
        while True:
            target = directory / f"{stamp}{f'_{number}' if number else ''}{DATED_SUFFIX}"
            try:
                os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            except FileExistsError:
                number += 1
                continue
            temporary.replace(target)
            return target
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(text: str, directory: Path) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=".writing-", dir=directory)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    Path(name).chmod(0o644)
    return Path(name)
