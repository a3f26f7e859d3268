"""A bench server that has imported everything: runs start from it in a second, each in a process of its own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from proveout.domain.errors import BlockedError
from proveout.domain.step import Step

VARIABLE = "PROVEOUT_BENCH_WARM"
READY = "Warm server ready"


def warmed(step: Step, variable: dict[str, str]) -> Step:
    """The step, started from the server that ``variable`` names."""
    command = msgspec.structs.replace(step.command, env=step.command.env | variable)
    return msgspec.structs.replace(step, command=command)


@contextmanager
def warm_server(python: str) -> Iterator[dict[str, str]]:
    """The environment variable that makes bench commands start from a server that lives as long as the block.

    Raises BlockedError where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="proveout-warm-") as folder:
        path = str(Path(folder) / "socket")
        server = subprocess.Popen(
            [python, "-m", "proveout_bench.warm", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            line = server.stdout.readline() if server.stdout else ""
            if READY not in line:
                error = server.stderr.read() if server.stderr else ""
                raise BlockedError(
                    f"the bench loop does not start: {error.strip()[-300:] or line}", where=python
                )
            yield {VARIABLE: path}
        finally:
            server.terminate()
            server.wait()
