"""Processor cores that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator

from proveout.domain.finding import Finding
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, notice, warning
from proveout.preflight.loops import needs_stack, size


def run(context: PreflightContext) -> Iterator[Finding]:
    """Few cores slow a run down; for loops with many workers they also make it time out."""
    wanted = limits.number(context, f"cores.{size(context)}")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if usable < wanted:
        say = warning if needs_stack(context) else notice
        yield say(
            "cores.few",
            f"{usable} cores may be used, {wanted:g} wanted",
            remedy="expect longer times than planned; raise the cpuset or --cpus of the container",
        )


CHECK = Check(
    id="cores",
    proves="this process may use as many cores as the loops start busy workers",
    remedy="widen the cpuset, or expect longer times",
    run=run,
)
