"""Holds a Ray cluster for one attempt: starts it, says where it is, and ends when the attempt has ended.

A program of its own: ``python -I head.py run SPEC.json`` under a supervisor, which stops everything that Ray left;
``python -I head.py remove SPEC.json`` then keeps Ray's own logs and takes its directory away. Standard library only.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.3
AFTER_SECONDS = 4.0
TRIES = 3
ASK_SECONDS = 3.0
SILENT_SECONDS = 30.0
LARGEST_LOG = 4 * 1024 * 1024
KEPT = ("gcs_server.*", "raylet.*", "dashboard*.log", "job-driver-*.log", "runtime_env_setup-*.log")


def run(spec: dict[str, Any]) -> int:
    """Start the cluster and hold it until the attempt has a record, or never starts, or Ray dies (status 1).

    A start that fails is tried again: on a busy machine Ray's own time limits are too short.
    """
    place = Path(tempfile.mkdtemp(prefix="pvr-", dir=spec["temp"]))
    Path(spec["place"]).write_text(str(place), encoding="utf-8")
    deadline = time.monotonic() + spec["start_seconds"]
    for number in range(1, TRIES + 1):
        port = _free_port()
        ray = _start(spec, place / str(number), port)
        if _wait(ray, f"http://127.0.0.1:{port}", deadline):
            _write(Path(spec["address"]), f"http://127.0.0.1:{port}")
            return _hold(f"http://127.0.0.1:{port}", spec)
        if not ray.poll() or time.monotonic() > deadline:
            print("proveout: the Ray cluster does not answer", flush=True)
            return 1
        print(f"proveout: Ray did not start (try {number} of {TRIES}, status {ray.returncode})", flush=True)
    return 1


def _start(spec: dict[str, Any], place: Path, port: int) -> subprocess.Popen[bytes]:
    argv = [*spec["argv"], f"--dashboard-port={port}", f"--temp-dir={place}"]
    argv += [f"--ray-client-server-port={_free_port()}", f"--dashboard-agent-listen-port={_free_port()}"]
    return subprocess.Popen(argv, env=_environment(spec["start_seconds"]), stdin=subprocess.DEVNULL)


def _environment(patience: float) -> dict[str, str]:
    env = {
        name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "RAY_JOB_HEADERS")
    }
    env["RAY_USAGE_STATS_ENABLED"] = env["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    return {"RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": f"{patience:g}", **env}


def _wait(ray: subprocess.Popen[bytes], address: str, deadline: float) -> bool:
    """Whether the Jobs API answers before Ray gives up or the time is over."""
    while not ray.poll() and time.monotonic() < deadline:
        if _answers(address):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _hold(address: str, spec: dict[str, Any]) -> int:
    """Look after the cluster. Not by ``ray start --block``, which ends all when a part dies that nobody needs."""
    began = answered = time.monotonic()
    ended, asked = 0.0, 0.0
    while True:
        now = time.monotonic()
        if Path(spec["exit"]).exists():
            ended = ended or now
            if now - ended > AFTER_SECONDS:
                return 0
        elif now - began > spec["start_seconds"] and not Path(spec["process"]).exists():
            return 0
        if now - asked > ASK_SECONDS:
            asked = now
            answered = now if _answers(address) else answered
        if now - answered > SILENT_SECONDS:
            print("proveout: the Ray cluster does not answer any more", flush=True)
            return 1
        time.sleep(POLL_SECONDS)


def remove(spec: dict[str, Any]) -> int:
    """Copy Ray's own logs into the attempt and remove the cluster's directory."""
    try:
        place = Path(Path(spec["place"]).read_text(encoding="utf-8"))
    except OSError:
        return 0
    kept = Path(spec["logs"])
    for pattern in KEPT:
        for log in place.glob(f"*/session_latest/logs/{pattern}"):
            if log.is_file() and 0 < log.stat().st_size <= LARGEST_LOG:
                kept.mkdir(exist_ok=True)
                shutil.copyfile(log, kept / log.name)
    if place.name.startswith("pvr-"):
        shutil.rmtree(place, ignore_errors=True)
    return 0


def _answers(address: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/api/version", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    what, where = sys.argv[1:3]
    read = json.loads(Path(where).read_text(encoding="utf-8"))
    sys.exit(run(read) if what == "run" else remove(read))
