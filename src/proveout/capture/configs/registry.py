"""The forms of resolved configurations by name. A new one is one file here and one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from proveout.capture.configs import json_file, nemo_rl_console, verl_console

CONFIG_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "json": json_file.read,
    "nemo-rl-console": nemo_rl_console.read,
    "verl-console": verl_console.read,
}
