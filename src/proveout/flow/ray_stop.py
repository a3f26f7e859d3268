"""``--ray-stop``: ends the Ray cluster that a run would join, where all of it belongs to this user.

``ray stop`` itself ends every cluster of the machine that it may; this ends the processes of one session alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

from proveout.domain.finding import Finding, Severity, Where
from proveout.domain.preflight import PreflightContext
from proveout.flow.planning import Planned
from proveout.preflight import ray_clusters

_SESSION = re.compile(r"/(session_[\w.-]+)")
_PATIENCE_SECONDS = 5.0
_REMEDY = "let its owner end it, or point the run at a cluster of its own with RAY_ADDRESS=local"


def with_ray_stopped(planned: Planned) -> Planned:
    """End that cluster; the plan with a finding that says what was ended, or why nothing was."""
    context = PreflightContext(
        loops=tuple(dict.fromkeys(step.coverage.loop for step in planned.plan.steps)),
        steps=tuple(step for step in planned.plan.steps if not step.skip_reason),
        run_dir="",
        env=dict(os.environ),
    )
    plan = msgspec.structs.replace(
        planned.plan, findings=(*planned.plan.findings, *stop_joined(context, os.getuid()))
    )
    return msgspec.structs.replace(planned, plan=plan)


def stop_joined(context: PreflightContext, user: int) -> tuple[Finding, ...]:
    """End the cluster that a run in ``context`` would join, if every process of it belongs to ``user`` (a uid)."""
    joined = ray_clusters.joined(context)
    if joined is None:
        return (_said("none", "no Ray cluster is here that the run would join", Severity.NOTICE),)
    if joined.named_by == "RAY_ADDRESS":
        what = f"RAY_ADDRESS names the Ray cluster at {joined.address}, so it is meant, and was not ended"
        return (_said("meant", what, Severity.WARNING, "unset RAY_ADDRESS to have it ended"),)
    raylet = next((each for each in ray_clusters.raylets() if each.address == joined.address), None)
    if raylet is None:
        what = f"the Ray cluster at {joined.address} does not run on this machine, so it was not ended"
        return (_said("elsewhere", what, Severity.WARNING, _REMEDY),)
    processes = _session(raylet.pid)
    foreign = [process for process in processes if not _is_of(process, user)]
    if foreign:
        what = (
            f"the Ray cluster at {joined.address} belongs to another user (process {foreign[0].pid}), "
            "so it was not ended"
        )
        return (_said("foreign", what, Severity.WARNING, _REMEDY),)
    left = _end(processes)
    if left:
        what = f"{len(left)} processes of the Ray cluster at {joined.address} did not end"
        return (_said("left", what, Severity.WARNING, "end them, then run again"),)
    if joined.named_by.startswith("/"):
        Path(joined.named_by).unlink(missing_ok=True)
    what = f"the Ray cluster at {joined.address} was ended before the run ({len(processes)} processes)"
    return (_said("ended", what, Severity.NOTICE),)


def _session(raylet: int) -> list[psutil.Process]:
    """The raylet, all that it started, and what else on this machine names its session directory."""
    try:
        own = psutil.Process(raylet)
        found = {process.pid: process for process in (own, *own.children(recursive=True))}
        name = _SESSION.search(" ".join(own.cmdline()))
    except psutil.Error:
        return []
    session = re.compile(rf"/{re.escape(name[1])}(?![\w.-])") if name else None
    for process in psutil.process_iter(["cmdline"]) if session else ():
        if session and any(session.search(word) for word in process.info["cmdline"] or ()):
            found.setdefault(process.pid, process)
    found.pop(os.getpid(), None)
    return list(found.values())


def _is_of(process: psutil.Process, user: int) -> bool:
    try:
        return process.uids().real == user
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def _end(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Ask all to end, then kill; what is still there."""
    alive = list(processes)
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for process in alive:
            try:
                ask(process)
            except psutil.Error:
                continue
        _, alive = psutil.wait_procs(alive, timeout=_PATIENCE_SECONDS)
    return alive


def _said(what: str, text: str, severity: Severity, remedy: str = "") -> Finding:
    return Finding(
        id=f"flow.ray-stop.{what}",
        severity=severity,
        what=text,
        where=Where(key="--ray-stop"),
        remedy=remedy,
    )
