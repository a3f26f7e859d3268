"""What every scheduler writes into an attempt directory before it starts, and when an attempt is lost."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Any

from proveout.domain import redact
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command
from proveout.launch.base import Task


def environment(command: Command) -> dict[str, str]:
    """The environment of a command that is started from this process."""
    env = {key: value for key, value in os.environ.items() if key not in command.unset} | command.env
    if "PYTHONPATH" in env:
        env["PYTHONPATH"] = _anchored(env["PYTHONPATH"])
    return env


def spec(task: Task) -> dict[str, Any]:
    """What the supervisor is told: it holds no secret, since the command's environment is the supervisor's own."""
    wrapped, files = task.wrapped, task.files
    return {
        "argv": wrapped.command.argv,
        "cwd": wrapped.command.cwd,
        "cleanup": wrapped.cleanup,
        "log": str(files.root / wrapped.console if wrapped.console else files.log),
        "link": str(files.log) if wrapped.log_link else "",
        "link_to": wrapped.log_link,
        "exit": str(files.exit),
        "process": str(files.process),
        "timeout_seconds": task.resources.timeout_minutes * 60,
        "launcher": task.launcher,
    }


def script(command: Command) -> str:
    """The command as a shell script for a person to read and run; proveout itself does not use it."""
    lines = ["#!/usr/bin/env bash", "set -euo pipefail", f"cd {shlex.quote(command.cwd)}"]
    lines += [f"unset {name}" for name in command.unset]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in redact.environment(command.env).items()]
    return "\n".join([*lines, shlex.join(command.argv), ""])


def lost(files: AttemptLayout, detail: str) -> ExitRecord:
    """Write down and return that nobody saw the attempt end."""
    record = ExitRecord(end=End.LOST, detail=detail, started=files.root.stat().st_mtime, finished=time.time())
    write_json(files.exit, record)
    return record


def _anchored(paths: str) -> str:
    """A search path whose relative entries mean what they mean here, though the command starts elsewhere."""
    return os.pathsep.join(
        str(Path(entry).absolute()) if entry else entry for entry in paths.split(os.pathsep)
    )
