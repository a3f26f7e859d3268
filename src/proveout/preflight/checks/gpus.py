"""GPUs by nvidia-smi: count, memory, driver, and processes that are on them already."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterator

import msgspec

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, Cost, blocked, warning

FIELDS = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version")


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU; memory in MiB."""

    index: str
    uuid: str
    name: str
    total: float
    used: float
    driver: str


def wanted(context: PreflightContext) -> int:
    """The most GPUs that any step wants on one machine, or the run as a whole."""
    return max(
        [context.gpus, *(step.resources.gpus // max(step.resources.nodes, 1) for step in context.running)]
    )


def query(env: dict[str, str], *words: str) -> list[list[str]]:
    """Rows of ``nvidia-smi`` in its CSV form. Raises BlockedError where it is absent or refuses."""
    program = shutil.which("nvidia-smi", path=env.get("PATH", ""))
    if program is None:
        raise BlockedError("nvidia-smi is not on PATH")
    try:
        done = subprocess.run(
            [program, *words, "--format=csv,noheader,nounits"],
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BlockedError(f"nvidia-smi does not answer: {error}", where=program) from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"status {done.returncode}"]
        raise BlockedError(f"nvidia-smi fails: {said[0][:300]}", where=program)
    return [[cell.strip() for cell in row] for row in csv.reader(done.stdout.splitlines()) if row]


def read(env: dict[str, str]) -> list[Gpu]:
    """The GPUs of this machine that CUDA_VISIBLE_DEVICES lets the run see."""
    gpus = [
        Gpu(
            index=row[0], uuid=row[1], name=row[2], total=_number(row[3]), used=_number(row[4]), driver=row[5]
        )
        for row in query(env, f"--query-gpu={','.join(FIELDS)}")
        if len(row) == len(FIELDS)
    ]
    visible = env.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return gpus
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return [gpu for gpu in gpus if any(name == gpu.index or gpu.uuid.startswith(name) for name in names)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0  # "[N/A]" on machines that share memory with the host


def run(context: PreflightContext) -> Iterator[Finding]:
    """Too few or none blocks; little memory, an old driver and company on the GPUs warn."""
    want = wanted(context)
    try:
        gpus = read(context.env)
    except BlockedError as error:
        yield blocked(
            "gpus.none",
            f"{want} GPUs wanted, but {error.what}",
            remedy="run on a machine with GPUs, hand them to the container, or choose a loop that needs none",
        )
        return
    if len(gpus) < want:
        visible = context.env.get("CUDA_VISIBLE_DEVICES")
        seen = f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
        yield blocked(
            "gpus.few",
            f"{want} GPUs wanted, {len(gpus)} seen{seen}",
            remedy="free more GPUs, or plan for those that are there (--gpus)",
        )
    yield from _memory(context, gpus)
    yield from _driver(context, gpus)
    yield from _company(context, gpus)


def _memory(context: PreflightContext, gpus: list[Gpu]) -> Iterator[Finding]:
    least = limits.number(context, "gpus.memory_gib") * 1024
    for gpu in gpus:
        if 0 < gpu.total < least:
            yield warning(
                "gpus.memory",
                f"GPU {gpu.index} ({gpu.name}) has {gpu.total / 1024:.0f} GiB, {least / 1024:g} GiB wanted",
                remedy="lower batch and sequence sizes, or use larger GPUs",
            )


def _driver(context: PreflightContext, gpus: list[Gpu]) -> Iterator[Finding]:
    oldest = limits.number(context, "gpus.driver_major")
    for driver in sorted({gpu.driver for gpu in gpus}):
        major = driver.split(".")[0]
        if major.isdigit() and int(major) < oldest:
            yield warning(
                "gpus.driver",
                f"driver {driver}; the loops' CUDA 13 builds want {oldest:g} or newer",
                remedy="update the driver, or use builds for its CUDA version",
            )


def _company(context: PreflightContext, gpus: list[Gpu]) -> Iterator[Finding]:
    names = {gpu.uuid: gpu.index for gpu in gpus}
    rows = query(context.env, "--query-compute-apps=pid,process_name,used_memory,gpu_uuid")
    busy = [row for row in rows if len(row) == 4 and row[3] in names]
    if busy:
        shown = ", ".join(f"{row[1]} (pid {row[0]}, {row[2]} MiB on GPU {names[row[3]]})" for row in busy[:6])
        yield warning(
            "gpus.busy",
            f"{len(busy)} processes are on these GPUs already: {shown}",
            where=Where(key="CUDA_VISIBLE_DEVICES"),
            remedy="end them if they are left over, or choose other GPUs",
        )


CHECK = Check(
    id="gpus",
    proves="there are as many free GPUs as a step wants, with memory and a driver that fit",
    remedy="free GPUs, choose others, or plan for fewer",
    cost=Cost.FAST,
    applies=lambda context: wanted(context) > 0,
    run=run,
)
