"""Ray clusters that a run here would join, found without Ray: by variable, by Ray's file, by process."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from proveout.assets import places
from proveout.domain.preflight import PreflightContext

ADDRESS_FILE = "ray_current_cluster"
_GCS = re.compile(r"--gcs-address=(\S+)")
_PYTHON = re.compile(r"--python_worker_command=(?:\S+setup_worker\.py\s+)?(\S+)")


@dataclass(frozen=True)
class Raylet:
    """A raylet on this machine: the cluster's address, the workers' interpreter, how it was started."""

    pid: int
    address: str
    python: str
    age_seconds: float
    env: Mapping[str, str]


@dataclass(frozen=True)
class Joined:
    """The cluster that ``ray.init`` would join; ``named_by`` is RAY_ADDRESS, Ray's file, or a process."""

    address: str
    named_by: str


def joined(context: PreflightContext) -> Joined | None:
    """What a run would join, in Ray's own order; None where it starts a cluster of its own.

    RAY_ADDRESS, the file that ``ray start`` leaves, and for NeMo-RL, which asks for "auto", any raylet
    (ray, _private/services.py, get_ray_address_from_environment; nemo_rl/distributed/virtual_cluster.py).
    """
    named = context.env.get("RAY_ADDRESS", "")
    if named and named not in {"auto", "local"}:
        return Joined(named, "RAY_ADDRESS")
    file = places.ray_temp(context.env) / ADDRESS_FILE
    try:
        return Joined(file.read_text(encoding="utf-8").strip(), str(file))
    except (OSError, UnicodeDecodeError):
        pass
    if "nemo-rl" in context.wanted:
        return next((Joined(raylet.address, f"raylet {raylet.pid}") for raylet in raylets()), None)
    return None


def answers(address: str, seconds: float = 2.0) -> bool:
    """Whether something accepts a connection at ``host:port``, with or without a scheme in front."""
    host, _, port = address.rsplit("/", 1)[-1].rpartition(":")
    if not port.isdigit():
        return False
    try:
        with socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), timeout=seconds):
            return True
    except OSError:
        return False


def raylets() -> Iterator[Raylet]:
    """Every raylet on this machine that may be looked at."""
    for process in psutil.process_iter(["name", "cmdline", "create_time"]):
        if process.info["name"] != "raylet":
            continue
        words = " ".join(process.info["cmdline"] or ())
        gcs, python = _GCS.search(words), _PYTHON.search(words)
        try:
            env = process.environ()
        except psutil.Error:
            env = {}
        yield Raylet(
            pid=process.pid,
            address=gcs[1] if gcs else "",
            python=python[1] if python and Path(python[1]).name.startswith("python") else "",
            age_seconds=time.time() - process.info["create_time"],
            env=env,
        )
