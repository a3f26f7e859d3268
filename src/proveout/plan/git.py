"""Questions to git that change nothing: no index refresh, no hooks, no filters, no external programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proveout.domain.errors import BlockedError, UsageError

_TIMEOUT_S = 60
_QUIET = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "diff.external=",
    "-c",
    "core.quotePath=false",
)


def git(where: Path, *words: str, ok: Sequence[int] = (0,)) -> bytes:
    """What ``git WORDS`` in ``where`` prints. Raises UsageError with git's own last line when it fails."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *_QUIET, "-C", str(where), *words],
            capture_output=True,
            env=env,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise BlockedError("git is not installed", remedy="install git") from error
    except subprocess.TimeoutExpired as error:
        raise BlockedError(f"git {words[0]} took more than {_TIMEOUT_S} s", where=str(where)) from error
    if done.returncode not in ok:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        reason = next((line for line in lines if line.startswith("fatal:")), lines[-1]).removeprefix(
            "fatal: "
        )
        remedy = ""
        if "dubious ownership" in reason:
            remedy = f"the tree belongs to another user: git config --global --add safe.directory {where}"
        raise UsageError(f"git {words[0]}: {reason}", where=str(where), remedy=remedy)
    return done.stdout


def names(raw: bytes) -> list[str]:
    """Names from NUL-separated output; bytes that are not UTF-8 stay as surrogates."""
    return [os.fsdecode(part) for part in raw.split(b"\0") if part]


def shown(name: str) -> str:
    """A file name fit to be printed and stored: bytes that are not UTF-8 as ``\\xNN``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
