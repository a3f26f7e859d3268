"""The batch script: short enough to be read, the same for one attempt and for an array of them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from proveout.domain.errors import UsageError
from proveout.domain.step import Resources
from proveout.launch.slurm.settings import SlurmSettings

MARGIN_MINUTES = 5
TASKS = "tasks.txt"
SUPERVISOR = "supervise.py"


def options(
    settings: SlurmSettings,
    resources: Resources,
    *,
    name: str,
    log: str,
    tasks: int = 1,
    more: Sequence[str] = (),
) -> list[str]:
    """The options of ``sbatch``; ``log`` is where Slurm's own words on the job go, ``more`` what a launcher adds."""
    wanted = {
        "job-name": name,
        "output": log,
        "account": settings.account,
        "partition": settings.partition,
        "qos": settings.qos,
        "nodes": str(resources.nodes),
        "ntasks-per-node": "1",
        "gres": settings.gres or _gpus(resources),
        "cpus-per-task": str(settings.cpus_per_task or ""),
        "mem": settings.mem,
        "time": _time(settings, resources),
    }
    chosen = {"gres": settings.gres, "mem": settings.mem, "cpus-per-task": settings.cpus_per_task}
    for option in more:
        key, _, value = option.removeprefix("--").partition("=")
        if key in wanted and value and not chosen.get(key, key not in chosen):
            wanted[key] = value
    found = [f"--{key}={value}" for key, value in wanted.items() if value]
    found += ["--exclusive"] if settings.exclusive else []
    found.append("--requeue" if settings.requeue else "--no-requeue")
    found += [f"--array=0-{tasks - 1}"] if tasks > 1 else []
    given = {option.partition("=")[0] for option in found}
    found += [option for option in more if option.partition("=")[0] not in given]
    return [*found, *settings.extra]


def text(found: Sequence[str], folder: str, python: str, specs: Sequence[str]) -> str:
    """The script: its options, and one supervisor for the attempt (of an array: for the attempt of this task)."""
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in found), ""]
    if len(specs) > 1:
        lines.append("# One task is one attempt: line N of the list names what task N - 1 runs.")
        lines.append(f'spec=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {shlex.quote(f"{folder}/{TASKS}")})')
        spec = '"$spec"'
    else:
        spec = shlex.quote(specs[0])
    lines.append(
        "# The supervisor runs the command (command.sh beside the spec shows it), stops what it leaves"
    )
    lines.append("# behind, and writes down how it ended.")
    lines.append(f"exec {shlex.quote(python)} -I {shlex.quote(f'{folder}/{SUPERVISOR}')} {spec}")
    return "\n".join([*lines, ""])


def minutes(limit: str) -> float:
    """A time limit as Slurm writes it (M, M:S, H:M:S, D-H, D-H:M, D-H:M:S) in minutes. Raises UsageError."""
    days, dash, rest = limit.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in parts) or (dash and not days.isdigit()) or len(parts) > 3:
        raise UsageError(f"{limit!r} is no time limit", where="launch.slurm.time", remedy="write D-HH:MM:SS")
    numbers = [int(part) for part in parts]
    if dash:
        hours, mins, seconds = [*numbers, 0, 0][:3]
        return int(days) * 1440 + hours * 60 + mins + seconds / 60
    if len(numbers) == 3:
        return numbers[0] * 60 + numbers[1] + numbers[2] / 60
    return numbers[0] + (numbers[1] / 60 if len(numbers) == 2 else 0)


def _time(settings: SlurmSettings, resources: Resources) -> str:
    wanted = math.ceil(resources.timeout_minutes) + MARGIN_MINUTES
    if settings.time and minutes(settings.time) < wanted:
        return settings.time
    return str(wanted)


def _gpus(resources: Resources) -> str:
    return f"gpu:{math.ceil(resources.gpus / max(resources.nodes, 1))}" if resources.gpus else ""
