"""Asks an interpreter about itself, by running a script there that needs nothing of ours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from typing import Any

from proveout.domain.errors import BlockedError

MARKER = "PROVEOUT-PROBE "


def ask(
    script: str,
    argv: Sequence[str],
    arguments: Mapping[str, Any],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    timeout: float = 30.0,
) -> dict[str, Any]:
    """What ``probes/<script>.py`` reports when it is run by ``argv`` with ``env`` and nothing else.

    ``arguments`` go in as one JSON word. Raises BlockedError when the interpreter does not start, does not
    answer within ``timeout`` seconds, or answers something else.
    """
    shown = " ".join(argv)
    with as_file(files("proveout.preflight") / "probes" / f"{script}.py") as path:
        try:
            done = subprocess.run(
                [*argv, str(path), json.dumps(arguments)],
                env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
                cwd=cwd or None,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BlockedError(f"no answer within {timeout:g} s", where=shown) from None
        except OSError as error:
            raise BlockedError(f"does not start: {error.strerror or error}", where=shown) from None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(MARKER):
            answer: dict[str, Any] = json.loads(line[len(MARKER) :])
            return answer
    tail = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
    raise BlockedError(f"the probe ended with status {done.returncode}: {tail[0][:300]}", where=shown)
