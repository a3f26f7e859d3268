"""A bench server that has imported everything: runs start from it in a second, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proveout.domain.errors import BlockedError

VARIABLE = "PROVEOUT_BENCH_WARM"
READY = "Warm server ready"


@contextmanager
def warm_server(python: str) -> Iterator[dict[str, str]]:
    """The environment variable that makes bench commands start from a server that lives as long as the block.

    Raises BlockedError where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="proveout-warm-") as folder:
        path = str(Path(folder) / "socket")
        server = subprocess.Popen(
            [python, "-m", "proveout_bench.warm", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            line = server.stdout.readline() if server.stdout else ""
            if READY not in line:
                error = server.stderr.read() if server.stderr else ""
                raise BlockedError(f"the bench loop does not start: {error.strip()[-300:] or line}", where=python)
            os.environ[VARIABLE] = path
            yield {VARIABLE: path}
        finally:
            os.environ.pop(VARIABLE, None)
            server.terminate()
            server.wait()
