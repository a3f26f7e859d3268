"""What the history keeps of a run, from its directory."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from statistics import fmean, median

from proveout.domain import redact
from proveout.domain.checkout import Checkout
from proveout.domain.claims import deciding
from proveout.domain.errors import ProveoutError
from proveout.domain.evidence import StepResult
from proveout.domain.files import read_json
from proveout.domain.layout import RunLayout
from proveout.domain.metrics import Series
from proveout.domain.report import Report
from proveout.domain.step import Step
from proveout.flow.reporting import build
from proveout.judge import metricfile
from proveout.judge.machine import is_machine
from proveout.store.history.records import MetricRecord, RunRecord, StepRecord
from proveout.store.runs import Run

TAIL = 10
_SEED = re.compile(r"(?:^|[._+])seed=", re.IGNORECASE)


def record_of(run: Run, report: Report | None = None) -> RunRecord:
    """What the history keeps of a run. Raises UsageError where its plan cannot be read."""
    journal = run.layout.journal_size
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
