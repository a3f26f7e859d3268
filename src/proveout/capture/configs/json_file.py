"""Format ``json``: one object in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


def read(path: Path) -> dict[str, Any]:
    """The object. Raises OSError and msgspec.MsgspecError."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
