"""Format ``verl-console``: the dict that verl's task runner pretty-prints (its trainer/main_ppo.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proveout.capture.configs.printed import console_lines, value_at

_BEGIN = "{'"
_KEYS = {"actor_rollout_ref", "trainer"}


def read(path: Path) -> dict[str, Any]:
    """The last dict that holds verl's sections. Raises OSError, and ValueError where there is none."""
    lines = console_lines(path)
    for at in range(len(lines) - 1, -1, -1):
        speaker, text = lines[at]
        if text.startswith(_BEGIN):
            try:
                found = value_at(lines, at, speaker)
            except ValueError:
                continue
            if isinstance(found, dict) and found.keys() >= _KEYS:
                return found
    raise ValueError(f"no printed dict with {' and '.join(sorted(_KEYS))} in the log")
