"""Host memory, with the limit of the control group that holds this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from proveout.domain.finding import Finding
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, blocked, warning
from proveout.preflight.loops import needs_stack, size

GIB = 1024**3
GROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes() -> tuple[int, str]:
    """Bytes that can still be used, and what limits them: the machine or its control group."""
    machine = int(psutil.virtual_memory().available)
    for limit_file, used_file in GROUP_FILES:
        try:
            left = int(Path(limit_file).read_text()) - int(Path(used_file).read_text())
        except (OSError, ValueError):
            continue
        if left < machine:
            return max(left, 0), f"the control group's {limit_file}"
    return machine, "the machine"


def run(context: PreflightContext) -> Iterator[Finding]:
    """Too little for the bench loop blocks; too little for a stack loop warns, as models differ."""
    wanted = limits.number(context, f"memory.{size(context)}_gib")
    free, limiter = available_bytes()
    if free / GIB < wanted:
        say = warning if needs_stack(context) else blocked
        yield say(
            "memory.low",
            f"{free / GIB:.1f} GiB of memory available ({limiter}), {wanted:g} GiB wanted",
            remedy="end other processes or raise the container's memory limit",
        )


CHECK = Check(
    id="memory",
    proves="there is memory for the loops' processes, within the control group's limit too",
    remedy="end other processes or raise the limit",
    run=run,
)
