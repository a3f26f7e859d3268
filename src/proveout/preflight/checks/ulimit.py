"""Resource limits that the run's processes inherit."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import limits
from proveout.preflight.check import Check, warning
from proveout.preflight.loops import size

KINDS = {
    "files": (resource.RLIMIT_NOFILE, "open files", "-n"),
    "processes": (resource.RLIMIT_NPROC, "processes of this user", "-u"),
    "file_bytes": (resource.RLIMIT_FSIZE, "bytes in a file", "-f"),
    "address_bytes": (resource.RLIMIT_AS, "bytes of address space", "-v"),
}


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding for each soft limit that is below what the loops use."""
    for name, (kind, what, flag) in KINDS.items():
        wanted = limits.number(context, f"ulimit.{size(context)}_{name}")
        soft, hard = resource.getrlimit(kind)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            continue
        enough = hard == resource.RLIM_INFINITY or hard >= wanted
        how = "with a larger number" if enough else "after the hard limit was raised"
        yield warning(
            "ulimit.low",
            f"{soft} {what} allowed, {wanted:.0f} wanted",
            where=Where(key=f"ulimit {flag}"),
            remedy=f"ulimit {flag}, {how}",
        )


CHECK = Check(
    id="ulimit",
    proves="limits on files, processes, file size and address space leave room for the loops",
    remedy="raise them with ulimit, or in the container's or login's settings",
    run=run,
)
