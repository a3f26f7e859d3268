"""The append-only journal of a run: every state change, one JSON object a line, on disk before it counts."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec


class Journal:
    """Appends to and reads one ``events.jsonl``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, /, event: str, **fields: Any) -> None:
        """Record ``event`` with the present time (seconds since the epoch) and sync it to disk.

        A partial line that a kill left behind is closed first, so that it spoils nothing after it.
        """
        line = msgspec.json.encode({"time": time.time(), "event": event, **fields}) + b"\n"
        with self._path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[dict[str, Any]]:
        """All whole events, oldest first; a partial or damaged line is left out."""
        if not self._path.exists():
            return []
        events = []
        for line in self._path.read_bytes().splitlines():
            try:
                event = msgspec.json.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                events.append(event)
        return events
