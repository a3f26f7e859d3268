"""Runs one command to its end and writes down how it ended, in a session that outlives proveout.

A program of its own: ``python -I supervise.py SPEC.json``. It uses the standard library only. The command's
environment is this process's own, with what the spec adds (secrets stand in no file). Everything that the command
leaves behind is stopped, daemons that made a session of their own included (this process adopts orphans). The exit
status is the command's, so that a scheduler sees it too.

When the attempt started is told by the clock of the file system that holds its directory, as that also dates what
the command writes; how far this host's clock is from it is written down beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 3.0
POLL_SECONDS = 0.1
CLEANUP_SECONDS = 20.0
LEAST_SKEW_SECONDS = 1.0
LEAST_FREE_BYTES = 64 * 1024
RESERVE_BYTES = 16 * 1024
RESTARTED = 75
ENGINE_REFUSED = (125, 126, 127)


class StopRequestedError(Exception):
    """Somebody asked this supervisor to stop."""


def main(spec_path: str) -> int:
    """Run the command of the spec; the exit status is the command's (128 + n where signal n killed it)."""
    spec = json.loads(Path(spec_path).read_text(encoding="utf-8"))
    exit_path = Path(spec["exit"])
    if exit_path.exists():
        return RESTARTED
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    restarts = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
    if restarts and Path(spec["process"]).exists():
        record = {"end": "ended by the machine", "detail": f"requeued by Slurm (restart {restarts})"}
        _finish(exit_path, record | {"launcher": spec["launcher"]} | _clock(Path(spec["process"])))
        return RESTARTED
    clock = _begin(spec)
    began = time.monotonic()
    try:
        record = _run(spec, began)
    except StopRequestedError:
        record = {"end": "interrupted", "detail": "stopped on request"}
    except OSError as error:
        record = {"end": "not started", "detail": f"{error.filename or spec['argv'][0]}: {error.strerror}"}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _stop_descendants()
    _clean_up(spec)
    record = _log_settled(spec, _of_the_command(spec, record))
    finished = clock["started"] + time.monotonic() - began
    _finish(exit_path, {**record, **clock, "finished": finished, "launcher": spec["launcher"]})
    return _status(record)


def _begin(spec: dict[str, Any]) -> dict[str, float]:
    """Say which process supervises, where; and when that was, by the file system's clock."""
    process, reserve = Path(spec["process"]), _reserve(Path(spec["exit"]))
    job = os.environ.get("SLURM_JOB_ID", "")
    said = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()), "host": socket.gethostname()}
    with contextlib.suppress(OSError):
        reserve.write_bytes(b"\0" * RESERVE_BYTES)
    _write(process, said | {"job": job})
    if spec.get("link"):
        link = Path(spec["link"])
        with contextlib.suppress(FileExistsError):
            link.symlink_to(str(spec["link_to"]).replace("{job}", job))
    os.environ.update(spec.get("env", {}))
    for name in spec.get("unset", ()):
        os.environ.pop(name, None)
    return _clock(process)


def _clock(written_now: Path) -> dict[str, float]:
    started = written_now.stat().st_mtime
    skew = time.time() - started
    return {"started": started, "skew": skew if abs(skew) >= LEAST_SKEW_SECONDS else 0.0}


def _run(spec: dict[str, Any], began: float) -> dict[str, Any]:
    with Path(spec["log"]).open("ab", buffering=0) as log:
        child = subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    limit = began + spec["timeout_seconds"]
    while child.poll() is None:
        if time.monotonic() > limit:
            return {"end": "timed out", "detail": f"after {spec['timeout_seconds']:.0f} s"}
        try:
            child.wait(timeout=min(POLL_SECONDS * 10, max(POLL_SECONDS, limit - time.monotonic())))
        except subprocess.TimeoutExpired:
            continue
    if child.returncode < 0:
        return {"end": "signalled", "signal": -child.returncode}
    return {"end": "exited", "code": child.returncode}


def _of_the_command(spec: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """How the command itself ended, as its wrapper wrote it down; ``record`` is how the wrapper ended.

    The file says ``ended WAIT_STATUS KILLED_FOR_MEMORY`` or ``not-started REASON``.
    """
    if not spec.get("end_file") or record["end"] not in ("exited", "signalled"):
        return record
    said = _read(Path(spec["end_file"]))
    word, _, rest = said.partition(" ")
    status, _, killed = rest.partition(" ")
    how = f"exit status {record['code']}" if record["end"] == "exited" else f"signal {record['signal']}"
    if word == "not-started":
        return {"end": "not started", "detail": rest}
    if word != "ended" and record.get("code") in ENGINE_REFUSED:
        return {"end": "not started", "detail": f"{spec['argv'][0]} started nothing ({how}): see the log"}
    if word != "ended" or not status.isdigit():
        return {"end": "ended by the machine", "detail": f"what ran the command was killed ({how})"}
    if int(status) and killed.isdigit() and int(killed):
        return {
            "end": "ended by the machine",
            "detail": f"out of memory: the kernel killed {killed} process(es)",
        }
    number = int(status)
    return (
        {"end": "signalled", "signal": number % 128}
        if number % 128
        else {"end": "exited", "code": number // 256}
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _clean_up(spec: dict[str, Any]) -> None:
    """Take away what outlives the command, by the launcher's own command."""
    if spec.get("cleanup"):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                spec["cleanup"],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=CLEANUP_SECONDS,
            )


def _log_settled(spec: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """The record, or that the log cannot be whole: a full disk lets a command end as if nothing were wrong."""
    log = Path(spec["log"])
    if spec.get("link") and not Path(spec["link"]).exists():
        with contextlib.suppress(OSError):
            Path(spec["link"]).unlink(missing_ok=True)
            Path(spec["link"]).symlink_to(log.name)
    try:
        left = os.statvfs(log.parent)
    except OSError:
        return record
    if left.f_bavail * left.f_frsize >= LEAST_FREE_BYTES or record["end"] not in ("exited", "signalled"):
        return record
    how = f"exit status {record['code']}" if record["end"] == "exited" else f"signal {record['signal']}"
    return {
        "end": "ended by the machine",
        "detail": f"no space is left where the log is written ({log.parent}); the command ended with {how}",
    }


def _status(record: dict[str, Any]) -> int:
    if record["end"] == "exited":
        return int(record["code"])
    return 128 + int(record["signal"]) if record["end"] == "signalled" else 1


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


def _reserve(exit_path: Path) -> Path:
    return exit_path.with_name(f".{exit_path.name}.reserve")


def _finish(exit_path: Path, record: dict[str, Any]) -> None:
    """Write the record; space for it was set aside at the start, so that a full disk does not swallow it."""
    _reserve(exit_path).unlink(missing_ok=True)
    _write(exit_path, record)


def _write(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
