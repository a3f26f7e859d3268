"""Runs into the history: one when it finishes, and whatever the history lacks when it is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proveout.domain.errors import ProveoutError
from proveout.domain.layout import HISTORY_FILE, RUNS_DIR, RunLayout
from proveout.domain.verdict import Verdict
from proveout.store.history.index import HistoryIndex
from proveout.store.history.records import RunRecord
from proveout.store.runs import Run

if TYPE_CHECKING:
    from proveout.domain.report import Report

BATCH = 200
Progress = Callable[[int, int], None]


def index_of(root: Path) -> HistoryIndex:
    """The history that belongs to a directory of runs."""
    return HistoryIndex((root.parent if root.name == RUNS_DIR else root) / HISTORY_FILE)


def index_run(run: Run, report: Report) -> None:
    """Put a run into the history. What goes wrong is a warning on standard error and changes nothing else."""
    from proveout.flow.run_record import record_of

    try:
        index_of(run.layout.root.parent).add([record_of(run, report)])
    except Exception as error:
        sys.stderr.write(f"proveout: warning: the run is not in the history: {error}\n")


def catch_up(root: Path, progress: Progress | None = None) -> list[str]:
    """Put in what the history lacks: runs that it does not know, and incomplete ones that went on since.

    Gives a sentence for each run that cannot be read.
    """
    index = index_of(root)
    known = index.known()
    there = _names(root)
    missing = sorted(name for name in there - known.keys() if RunLayout(root / name).plan.is_file())
    open_ones = [name for name, (verdict, _) in known.items() if verdict == Verdict.INCOMPLETE]
    missing += [
        name for name in open_ones if name in there and RunLayout(root / name).journal_size != known[name][1]
    ]
    return _add(index, root, missing, progress)


def rebuild(root: Path, progress: Progress | None = None) -> list[str]:
    """Read every run directory again and forget the runs whose directory is gone."""
    index = index_of(root)
    if index.damaged:
        index.start_anew()
    there = sorted(name for name in _names(root) if RunLayout(root / name).plan.is_file())
    index.forget(set(index.known()) - set(there))
    return _add(index, root, there, progress)


def _add(index: HistoryIndex, root: Path, names: list[str], progress: Progress | None) -> list[str]:
    unreadable: list[str] = []
    for start in range(0, len(names), BATCH):
        index.add(_records(root, names[start : start + BATCH], unreadable))
        if progress is not None:
            progress(min(start + BATCH, len(names)), len(names))
    return unreadable


def _records(root: Path, names: list[str], unreadable: list[str]) -> Iterator[RunRecord]:
    from proveout.flow.run_record import record_of

    for name in names:
        try:
            yield record_of(Run(RunLayout(root / name)))
        except (ProveoutError, OSError, ValueError, KeyError) as error:
            unreadable.append(f"{name}: {error}")


def _names(root: Path) -> set[str]:
    if not root.is_dir():
        return set()
    with os.scandir(root) as entries:
        return {entry.name for entry in entries if entry.name[0] != "."}
