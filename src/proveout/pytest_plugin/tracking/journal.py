"""The journal of one process of a session: one JSON line for each metric and outcome, written at once.

A process that dies keeps what it journaled: lines go to the kernel with one ``write`` each, so a crash, a
kill or ``os._exit`` loses none of them, and forked children that hold the tracker append to the same file.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUFFIX = ".jsonl"


class Journal:
    """An append-only file of JSON lines; the first one says which session and process wrote it."""

    def __init__(self, directory: Path, name: str, session: dict[str, Any]) -> None:
        """Creates ``directory`` and the file. Raises OSError where that cannot be done."""
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"{name}{SUFFIX}"
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.write(kind="session", owner=owner(), **session)

    def write(self, /, **record: Any) -> None:
        """Append one record."""
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        """Close the file and leave it."""
        os.close(self._descriptor)


def owner() -> dict[str, Any]:
    """This process, so that a later session can tell whether it still runs."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "created": _created(os.getpid())}


def still_runs(who: dict[str, Any]) -> bool:
    """Whether the process that wrote a journal may still run; true of one on another host."""
    if who.get("host") != socket.gethostname():
        return True
    created = _created(int(who.get("pid", -1)))
    return created is not None and created == who.get("created")


def _created(pid: int) -> float | None:
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, ValueError):
        return None


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The records of one journal; a line that was cut short by a kill is left out."""
    with path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record
