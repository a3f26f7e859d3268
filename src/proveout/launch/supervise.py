"""Runs one command to its end and writes down how it ended, in a session that outlives proveout.

A program of its own: ``python -I supervise.py SPEC.json``. It uses the standard library only. The command's
environment is this process's own (secrets stand in no file). Everything that the command leaves behind is
stopped, daemons that made a session of their own included (this process adopts orphans).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 3.0
POLL_SECONDS = 0.1


class StopRequestedError(Exception):
    """Somebody asked this supervisor to stop."""


def main(spec_path: str) -> int:
    """Run the command of the spec; the exit status says only whether the record could be written."""
    spec = json.loads(Path(spec_path).read_text(encoding="utf-8"))
    exit_path, started = Path(spec["exit"]), time.time()
    if exit_path.exists():
        return 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _write(Path(spec["process"]), {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())})
    try:
        record = _run(spec, started)
    except StopRequestedError:
        record = {"end": "interrupted", "detail": "stopped on request"}
    except OSError as error:
        record = {"end": "not started", "detail": f"{error.filename or spec['argv'][0]}: {error.strerror}"}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _stop_descendants()
    _write(exit_path, {**record, "started": started, "finished": time.time(), "launcher": spec["launcher"]})
    return 0


def _run(spec: dict[str, Any], started: float) -> dict[str, Any]:
    with Path(spec["log"]).open("ab", buffering=0) as log:
        child = subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    limit = started + spec["timeout_seconds"]
    while child.poll() is None:
        if time.time() > limit:
            return {"end": "timed out", "detail": f"after {spec['timeout_seconds']:.0f} s"}
        try:
            child.wait(timeout=min(POLL_SECONDS * 10, max(POLL_SECONDS, limit - time.time())))
        except subprocess.TimeoutExpired:
            continue
    if child.returncode < 0:
        return {"end": "signalled", "signal": -child.returncode}
    return {"end": "exited", "code": child.returncode}


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise StopRequestedError


def _stop_descendants() -> None:
    for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        deadline = time.time() + patience
        while left := _descendants(os.getpid()):
            for pid in left:
                _signal(pid, number)
            _reap()
            if time.time() > deadline:
                break
            time.sleep(POLL_SECONDS)
    _reap()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _descendants(root: int) -> list[int]:
    """Living processes below ``root`` (zombies left out), from /proc."""
    children: dict[int, list[int]] = {}
    dead = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                if fields[0] in "ZX":
                    dead.add(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return [pid for pid in found if pid not in dead]


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the command's name: state, parent, ..."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return []


def start_ticks(pid: int) -> int:
    """Start time of a process in clock ticks after boot: with its number it names one process only."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _write(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
