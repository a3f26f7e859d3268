"""Runs into the history: one when it finishes, and whatever the history lacks when it is asked."""

from __future__ import annotations

import hashlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean, median

from proveout.domain import redact
from proveout.domain.checkout import Checkout
from proveout.domain.claims import deciding
from proveout.domain.errors import ProveoutError
from proveout.domain.evidence import StepResult
from proveout.domain.files import read_json
from proveout.domain.layout import HISTORY_FILE, RUNS_DIR, RunLayout
from proveout.domain.metrics import Series
from proveout.domain.report import Report
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.reporting import build
from proveout.judge import metricfile
from proveout.judge.machine import is_machine
from proveout.store.history.index import HistoryIndex
from proveout.store.history.records import MetricRecord, RunRecord, StepRecord
from proveout.store.runs import Run

TAIL = 10
BATCH = 200
_SEED = re.compile(r"(?:^|[._+])seed=", re.IGNORECASE)
Progress = Callable[[int, int], None]


def index_of(root: Path) -> HistoryIndex:
    """The history that belongs to a directory of runs."""
    return HistoryIndex((root.parent if root.name == RUNS_DIR else root) / HISTORY_FILE)


def index_run(run: Run, report: Report) -> None:
    """Put a run into the history. What goes wrong is a warning on standard error and changes nothing else."""
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
    missing += [name for name in open_ones if name in there and _journal(root / name) != known[name][1]]
    return _add(index, root, missing, progress)


def rebuild(root: Path, progress: Progress | None = None) -> list[str]:
    """Read every run directory again and forget the runs whose directory is gone."""
    index = index_of(root)
    if index.damaged:
        index.start_anew()
    there = sorted(name for name in _names(root) if RunLayout(root / name).plan.is_file())
    index.forget(set(index.known()) - set(there))
    return _add(index, root, there, progress)


def record_of(run: Run, report: Report | None = None) -> RunRecord:
    """What the history keeps of a run. Raises UsageError where its plan cannot be read."""
    journal = _journal(run.layout.root)
    report = report or build(run)
    checkouts = _checkouts(run.layout)
    steps = {step.id: step for step in run.plan.steps}
    return RunRecord(
        id=run.layout.id,
        directory=str(run.layout.root),
        verdict=report.result,
        started=report.run.started if report.run else 0.0,
        finished=report.run.finished if report.run else 0.0,
        model=report.model,
        version=report.run.version if report.run else "",
        change=", ".join(map(_named, checkouts)),
        commits=tuple(checkout.commit.lower() for checkout in checkouts if checkout.commit),
        state=_state(checkouts),
        summary=redact.text(report.summary),
        journal=journal,
        steps=tuple(_step(run, steps[result.id], result, checkouts) for result in report.steps),
    )


def _add(index: HistoryIndex, root: Path, names: list[str], progress: Progress | None) -> list[str]:
    unreadable: list[str] = []
    for start in range(0, len(names), BATCH):
        index.add(_records(root, names[start : start + BATCH], unreadable))
        if progress is not None:
            progress(min(start + BATCH, len(names)), len(names))
    return unreadable


def _records(root: Path, names: list[str], unreadable: list[str]) -> Iterator[RunRecord]:
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


def _journal(root: Path) -> int:
    try:
        return RunLayout(root).journal.stat().st_size
    except OSError:
        return 0


def _step(run: Run, step: Step, result: StepResult, checkouts: tuple[Checkout, ...]) -> StepRecord:
    last = result.attempts[-1] if result.attempts else None
    ended = last.exit if last else None
    ran = ended is not None and ended.finished > ended.started > 0
    findings = deciding(last) if last else []
    triage = last.triage if last else None
    words = _words(step, checkouts)
    return StepRecord(
        step=result.id,
        loop=result.coverage.loop,
        level=result.coverage.level,
        variant=result.coverage.variant,
        verdict=result.verdict,
        reason=redact.text(result.reason),
        verdicts=tuple(attempt.verdict.value for attempt in result.attempts) or (result.verdict.value,),
        seconds=ended.finished - ended.started if ended is not None and ran else None,
        command=_hash(words),
        recipe=_hash(word for word in words if not _SEED.search(word)),
        boundary=triage.boundary.value if triage else "",
        cause=findings[0].id if findings else "",
        metrics=_metrics(run, last.directory) if last else (),
    )


def _words(step: Step, checkouts: tuple[Checkout, ...]) -> list[str]:
    """What is run: arguments and variables, a checkout's path as its role; not where the interpreter is."""
    env = (f"{key}={value}" for key, value in sorted(step.command.env.items()))
    words = [*step.command.argv[1:], *env]
    for checkout in checkouts:
        words = [word.replace(checkout.path, f"<{checkout.role}>") for word in words]
    return words


def _hash(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:16]


def _metrics(run: Run, directory: str) -> tuple[MetricRecord, ...]:
    path = run.layout.attempts / directory / "metrics.json"
    try:
        table = metricfile.load(path).table
    except ProveoutError:
        return ()
    return tuple(_metric(tag, series) for tag, series in table.series.items() if len(series))


def _metric(tag: str, series: Series) -> MetricRecord:
    finite = [value for value in series.values if math.isfinite(value)]
    tail = [value for value in series.values[-TAIL:] if math.isfinite(value)]
    return MetricRecord(
        tag=tag,
        points=len(series),
        non_finite=len(series) - len(finite),
        first=finite[0] if finite else None,
        last=finite[-1] if finite else None,
        tail=fmean(tail) if tail else None,
        median=median(finite) if finite else None,
        low=min(finite, default=None),
        high=max(finite, default=None),
        machine=is_machine(tag),
    )


def _checkouts(layout: RunLayout) -> tuple[Checkout, ...]:
    if not layout.checkouts.exists():
        return ()
    try:
        return read_json(layout.checkouts, tuple[Checkout, ...])
    except ProveoutError:
        return ()


def _named(checkout: Checkout) -> str:
    changed = len(checkout.dirty) + len(checkout.untracked)
    return f"{checkout.role} {checkout.commit[:9] or 'no commit'}" + (f"+{changed}" if changed else "")


def _state(checkouts: tuple[Checkout, ...]) -> str:
    """A hash of all commits and differences; '' where one of them is not known."""
    known = all(each.commit and (each.diff_hash or not (each.dirty or each.untracked)) for each in checkouts)
    if not checkouts or not known:
        return ""
    words = sorted(f"{checkout.role} {checkout.commit} {checkout.diff_hash}" for checkout in checkouts)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
