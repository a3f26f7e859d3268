"""The isolated environments of pinned stacks that marked tests need: where their interpreters are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PLACE, REQUIRED = "PROVEOUT_STACKS", "PROVEOUT_TEST_STACKS"


def python_of(name: str) -> str:
    """The interpreter of stack ``name``. Skips the test where it is not installed, but fails it where
    PROVEOUT_TEST_STACKS=1 says that it must be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    root = Path(os.environ.get(PLACE, cache / "proveout" / "stacks"))
    python = root / name / "bin" / "python"
    if not python.exists():
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(
                f"stack {name} is not installed in {root}; install it with: proveout stack install {name}"
            )
        pytest.skip(f"stack {name} is not installed in {root}")
    return str(python)
