"""What the tests of models and data share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def proveout(tmp_path: Path) -> Run:
    """``proveout WORDS`` as a process of its own, with a home directory of its own."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
        return subprocess.run(
            [sys.executable, "-m", "proveout", *map(str, words)],
            env={**inherited, "HOME": str(home), **env},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
