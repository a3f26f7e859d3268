"""How the trees stand together: what would be imported instead of what is under test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from proveout.domain.checkout import MCORE_IN_BRIDGE, Drift
from proveout.domain.finding import Finding, Severity, Where
from proveout.plan.change import Change


def around(
    checkouts: Mapping[str, str], drift: Drift | None, change: Change, *, explicit: bool
) -> Iterator[Finding]:
    """Findings about the import path and the trees beside each other; ``explicit`` when levels were named."""
    if not change.files and not change.whole and checkouts and not explicit:
        yield _finding(
            "change.none",
            Severity.WARNING,
            f"no change was found ({change.source})",
            remedy="give --base REV, --patch FILE, paths, --whole, or --level",
        )
    path = os.environ.get("PYTHONPATH", "")
    if path and "" in path.split(os.pathsep):
        yield _finding(
            "pythonpath.empty-entry",
            Severity.WARNING,
            "PYTHONPATH has an empty entry, which puts the current directory on the import path; the plan "
            "leaves it out",
            key="PYTHONPATH",
            remedy="remove the leading, trailing or double colon",
        )
    bridge = checkouts.get("bridge")
    if bridge and "mcore" not in checkouts and not Path(bridge, MCORE_IN_BRIDGE, "megatron/core").is_dir():
        yield _finding(
            "mcore.missing",
            Severity.WARNING,
            f"{MCORE_IN_BRIDGE} holds no Megatron-Core: workers would import the one of their environment",
            file=f"{bridge}/{MCORE_IN_BRIDGE}",
            remedy=f"git -C {bridge} submodule update --init {MCORE_IN_BRIDGE}, or give --mcore PATH",
        )
    if drift and drift.state == "differs":
        names = [*drift.differs, *drift.only_here, *drift.only_there]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield _finding(
            "vendored.differs",
            Severity.WARNING,
            f"the Bridge that NeMo-RL vendors differs from the one under test in {len(names)} "
            f"files ({shown}); "
            "only PYTHONPATH makes the one under test win",
            file=drift.path,
            remedy="check the import path of the worker (proveout doctor), not of the driver",
        )
    if drift and drift.state == "missing":
        yield _finding(
            "vendored.missing",
            Severity.WARNING,
            "the Bridge that NeMo-RL vendors is not there, so its mcore environments cannot be built from it",
            file=drift.path,
            remedy="initialise the submodule, or use prebuilt worker environments",
        )


def _finding(
    kind: str,
    severity: Severity,
    what: str,
    *,
    file: str | None = None,
    key: str | None = None,
    remedy: str = "",
) -> Finding:
    return Finding(
        id=f"plan.{kind}", severity=severity, what=what, where=Where(file=file, key=key), remedy=remedy
    )
