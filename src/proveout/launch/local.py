"""Scheduler ``local``: a process on this machine, under a supervisor that outlives proveout."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil

from proveout.domain import redact
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json, write_atomic, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import supervise

CANCEL_SECONDS = 10.0
STARTING_SECONDS = 5.0


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which process supervises an attempt; ``start_ticks`` tells it from a later one of the same number."""

    pid: int
    start_ticks: int


class LocalJob:
    """An attempt under its supervisor."""

    def __init__(self, files: AttemptLayout, pid: int) -> None:
        self._files, self._pid = files, pid

    def poll(self) -> ExitRecord | None:
        """How it ended, or None while it runs; LOST when the supervisor died without a record."""
        if self._files.exit.exists():
            return read_json(self._files.exit, ExitRecord)
        if _alive(self._pid):
            return None
        if self._files.exit.exists():
            return read_json(self._files.exit, ExitRecord)
        return _lost(self._files, "its supervisor died")

    def cancel(self) -> ExitRecord:
        """Ask the supervisor to stop the command and everything below it; kill what does not obey."""
        record = self.poll()
        deadline = time.monotonic() + CANCEL_SECONDS
        tree = _tree(self._pid) if record is None else []
        while record is None and time.monotonic() < deadline:
            _signal(self._pid, signal.SIGTERM)
            time.sleep(0.05)
            record = self.poll()
        for process in tree:
            if record is None or process.is_running():
                _kill(process)
        return record or _lost(self._files, "its supervisor did not stop and was killed")


class LocalScheduler:
    """Starts attempts as processes of this machine."""

    name = "local"

    def submit(self, command: Command, files: AttemptLayout, resources: Resources) -> LocalJob:
        """Start ``command`` with its log in ``run.log``; raises BlockedError where that is not possible."""
        env = {key: value for key, value in os.environ.items() if key not in command.unset} | command.env
        if "PYTHONPATH" in env:
            env["PYTHONPATH"] = _anchored(env["PYTHONPATH"])
        try:
            write_atomic(files.command, _script(command))
            write_json(files.env, redact.environment(env))
            write_json(
                files.job,
                {
                    "argv": command.argv,
                    "cwd": command.cwd,
                    "log": str(files.log),
                    "exit": str(files.exit),
                    "process": str(files.process),
                    "timeout_seconds": resources.timeout_minutes * 60,
                    "launcher": "process",
                },
            )
            started = subprocess.Popen(
                [sys.executable, "-I", supervise.__file__, str(files.job)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise BlockedError(
                f"the attempt cannot be started: {error.strerror or error}", where=str(files.root)
            ) from error
        return LocalJob(files, started.pid)

    def reattach(self, files: AttemptLayout) -> LocalJob | ExitRecord:
        """The job that an earlier proveout started here, or how it ended."""
        if files.exit.exists():
            return read_json(files.exit, ExitRecord)
        if not files.process.exists():
            return _lost(files, "proveout died before it started")
        record = read_json(files.process, ProcessRecord)
        if _alive(record.pid) and supervise.start_ticks(record.pid) == record.start_ticks:
            return LocalJob(files, record.pid)
        if files.exit.exists():
            return read_json(files.exit, ExitRecord)
        return _lost(files, "its supervisor died")


def _anchored(paths: str) -> str:
    """A search path whose relative entries mean what they mean here, though the command starts elsewhere."""
    return os.pathsep.join(
        str(Path(entry).absolute()) if entry else entry for entry in paths.split(os.pathsep)
    )


def _lost(files: AttemptLayout, detail: str) -> ExitRecord:
    record = ExitRecord(end=End.LOST, detail=detail, started=_started(files.root), finished=time.time())
    write_json(files.exit, record)
    return record


def _started(root: Path) -> float:
    return root.stat().st_mtime


def _script(command: Command) -> str:
    """The command as a shell script for a person to read and run; proveout itself does not use it."""
    lines = ["#!/usr/bin/env bash", "set -euo pipefail", f"cd {shlex.quote(command.cwd)}"]
    lines += [f"unset {name}" for name in command.unset]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in redact.environment(command.env).items()]
    return "\n".join([*lines, shlex.join(command.argv), ""])


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


SCHEDULER = LocalScheduler()
