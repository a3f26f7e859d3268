"""What every scheduler writes into an attempt directory before it starts, and when an attempt is lost."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

from proveout.domain import redact
from proveout.domain.checkout import Checkout
from proveout.domain.errors import UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout, RunLayout
from proveout.domain.step import Command
from proveout.launch import supervise
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
        "end_file": str(files.root / wrapped.end_file) if wrapped.end_file else "",
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


def clean_up(files: AttemptLayout) -> None:
    """Take away what the attempt's supervisor would have taken away, had it not died."""
    try:
        argv = read_json(files.job, dict[str, Any]).get("cleanup")
    except UsageError:
        return
    if argv:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(argv, capture_output=True, check=False, timeout=supervise.CLEANUP_SECONDS)


def run_directory(files: AttemptLayout) -> Path:
    """The run that an attempt belongs to, or its own directory where there is none."""
    run = files.root.parents[1]
    return run if RunLayout(run).plan.exists() else files.root


def checkouts_of(files: AttemptLayout) -> tuple[Checkout, ...]:
    """The checkouts under test of the run that an attempt belongs to."""
    path = RunLayout(files.root.parents[1]).checkouts
    return read_json(path, tuple[Checkout, ...]) if path.exists() else ()


def _anchored(paths: str) -> str:
    """A search path whose relative entries mean what they mean here, though the command starts elsewhere."""
    return os.pathsep.join(
        str(Path(entry).absolute()) if entry else entry for entry in paths.split(os.pathsep)
    )
