"""What ``proveout dump`` makes of a log directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proveout.capture.conflicts import as_findings
from proveout.capture.files import below
from proveout.capture.lineage import Lineage, Run, newest, runs
from proveout.capture.metrics import conflict_findings, other_attempt, read_files, replaced
from proveout.capture.reading import Reading
from proveout.capture.registry import READERS
from proveout.capture.settle import settle
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Finding
from proveout.domain.metrics import MetricTable

NEWEST, ALL = "newest", "all"


class Dump(NamedTuple):
    """The chosen runs' table, all runs found, the chosen ones, findings, and every tag of any kind."""

    table: MetricTable
    runs: tuple[Run, ...]
    chosen: tuple[Run, ...]
    findings: tuple[Finding, ...]
    tags: frozenset[str]


def dump(log_dir: Path, which: str = NEWEST) -> Dump:
    """Read all event files below ``log_dir``.

    ``which`` is "newest" (the newest run with those that it goes on from), "all" (one after the other, the
    later value wins), or the name of one run: its directory or the end of its path.

    Raises UsageError for a name that is no run. Without event files ``runs`` is empty.
    """
    reader = READERS["tensorboard"]
    findings: list[Finding] = []
    readings = list(read_files(reader, below(log_dir, reader.files), findings))
    ordered = runs(readings)
    lineage = _choose(ordered, which)
    table = settle(lineage.readings() if which == NEWEST else _all(lineage.kept))
    for name, why in replaced(lineage):
        table.left_out.append(f"{name}: {why}")
        findings.append(other_attempt(name, why))
    findings.extend(conflict_findings(table, lineage) if which == NEWEST else as_findings(table.conflicts))
    tags = frozenset(tag for reading in readings for tag in (*reading.points, *reading.other_tags))
    return Dump(table, tuple(ordered), lineage.kept, tuple(findings), tags)


def conflicts_of_all(found: Dump) -> MetricTable:
    """The table of all runs together, for its conflicts."""
    return settle(_all(found.runs))


def _all(chosen: Sequence[Run]) -> list[Reading]:
    return [reading for run in chosen for reading in run.readings]


def _choose(ordered: Sequence[Run], which: str) -> Lineage:
    if which == NEWEST:
        return newest(ordered)
    if which == ALL:
        return Lineage(tuple(ordered), ())
    wanted = [run for run in ordered if run.name == which or run.name.endswith(f"/{which}")]
    if len(wanted) != 1:
        names = [Path(run.name).name for run in ordered]
        raise UsageError(
            f"{len(wanted)} runs are called {which!r}{nearest(which, names)}",
            remedy=f"choose newest, all, or one of: {', '.join(run.name for run in ordered)}",
        )
    return Lineage(tuple(wanted), tuple(run for run in ordered if run not in wanted))
