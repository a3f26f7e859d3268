"""Format ``nemo-rl-console``: what NeMo-RL pretty-prints after ``Final config:`` (its examples/run_*.py).

A script with several runs prints several; the last one belongs to the run that is judged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proveout.capture.configs.printed import console_lines, value_at

_MARK = "Final config:"


def read(path: Path) -> dict[str, Any]:
    """The last configuration that was printed. Raises OSError, and ValueError where there is none."""
    lines = console_lines(path)
    marks = [at for at, (_, text) in enumerate(lines) if text.rstrip().endswith(_MARK)]
    if not marks:
        raise ValueError(f"no line '{_MARK}' in the log")
    at = marks[-1]
    speaker, text = lines[at]
    found = value_at(lines, at + 1, speaker, text[: text.index(_MARK)])
    if not isinstance(found, dict):
        raise ValueError(f"no configuration follows '{_MARK}'")
    return found
