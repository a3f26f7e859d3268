"""What tests of several rooms share: the command line as a user starts it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def pytest_configure() -> None:
    """A shell that starts a job in the background has it ignore Ctrl-C; what tests start must not inherit that."""
    with contextlib.suppress(ValueError):
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Answer:
    """What one call of the command line gave."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Answer:
    """Run ``python -m proveout ARGUMENTS`` in ``cwd``; a traceback fails the test at once."""
    done = subprocess.run(
        [sys.executable, "-m", "proveout", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert "Traceback (most recent call last)" not in done.stderr, done.stderr
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def proveout(tmp_path: Path) -> Callable[..., Answer]:
    """The command line in a directory of the test's own."""
    return lambda *arguments, **options: call(*arguments, **{"cwd": tmp_path, **options})
