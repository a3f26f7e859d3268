"""Attach scripts that ray.sub leaves for an idle cluster: does one still lead into a container of use?"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proveout.domain.errors import UsageError
from proveout.launch.site import LaunchSite
from proveout.launch.slurm import query

PROBE_SECONDS = 120.0
_JOB = re.compile(r"--jobid[= ](\d+)")
_WORKDIR = re.compile(r"--container-workdir=(\S+)")
_NODE = re.compile(r'-w "?([\w.-]+)"?')
_IMAGE_PLACE = "IMAGE"


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """What an attach script leads to. ``stale`` says why it is of no use, '' where it is; ``fresh`` is a step to use
    instead, '' where the allocation itself is over.
    """

    job: str
    state: str
    stale: str = ""
    fresh: str = ""


def attached(script: Path, site: LaunchSite, paths: Sequence[str]) -> Attached:
    """Look at an attach script: is its job running, and does its container see ``paths`` (checkouts, log directory)?

    Raises UsageError for a file that is no attach script, UnreachableError where Slurm does not answer.
    """
    try:
        text = script.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(script)) from error
    job, workdir = _JOB.search(text), _WORKDIR.search(text)
    if job is None or workdir is None:
        raise UsageError("this is no attach script of ray.sub", where=str(script))
    number = job[1]
    state = query.states([number], accounts=False).get(number)
    if state is None or state.state != "RUNNING":
        said = state.state if state is not None and state.state else "not known to Slurm"
        return Attached(job=number, state=said, stale=f"job {number} is {said}: the allocation is over")
    blind = _blind(script, paths)
    if not blind:
        return Attached(job=number, state=state.state)
    node = _NODE.search(text)
    return Attached(
        job=number,
        state=state.state,
        stale=blind,
        fresh=fresh_step(number, node[1] if node else "", site, site.workdir or workdir[1], paths),
    )


def fresh_step(job: str, node: str, site: LaunchSite, workdir: str, paths: Sequence[str]) -> str:
    """A container step of its own in the allocation, with image, mounts and directory said explicitly."""
    own = [mount if ":" in mount else f"{mount}:{mount}" for mount in site.mounts]
    shown = dict.fromkeys([*(f"{path}:{path}" for path in [*paths, workdir] if path.startswith("/")), *own])
    words = ["srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1"]
    words += [f"--nodelist={node}"] if node else []
    words += [
        f"--container-image={site.image or _IMAGE_PLACE}",
        f"--container-mounts={','.join(shown)}",
        f"--container-workdir={workdir}",
    ]
    return shlex.join([*words, "--pty", "bash"])


def _blind(script: Path, paths: Sequence[str]) -> str:
    """Why the container that the script enters is of no use, or ''."""
    looks = " && ".join(
        f"{{ test -e {shlex.quote(p)} || {{ echo unseen: {shlex.quote(p)}; false; }}; }}" for p in paths
    )
    try:
        done = subprocess.run(
            ["bash", str(script)],
            env=os.environ | {"COMMAND": looks or "true"},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"its container gave no answer in {PROBE_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    unseen = re.findall(r"^unseen: (.*)$", done.stdout, re.MULTILINE)
    if unseen:
        return f"its container does not see {unseen[0]}"
    return f"it cannot be entered: {' '.join(done.stderr.split())[-300:] or f'exit status {done.returncode}'}"
