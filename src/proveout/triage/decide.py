"""What each event is: a possible cause, a wrapper, aftermath or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from proveout.domain.finding import Boundary
from proveout.triage.catalog import Rule, compile_pattern
from proveout.triage.frames import owner
from proveout.triage.scan import Event, LogScan
from proveout.triage.stages import end_marks, last_progress
from proveout.triage.traces import Trace

GENERIC = 12.0
UNOWNED = 8.0
MILD = ("WARNING", "INFO", "DEBUG")
"""Levels of lines that tell of something the program can live with."""


@dataclass
class Candidate:
    """A possible cause, with what speaks for it."""

    event: Event
    boundary: Boundary
    subkind: str
    rule: Rule | None
    score: float
    hard: bool
    why: list[str] = field(default_factory=list)
    frame: str = ""
    survived: bool = False

    @property
    def trace(self) -> Trace | None:
        return self.event.trace


@dataclass
class Sorted:
    """All events by what they are."""

    candidates: list[Candidate] = field(default_factory=list)
    metrics: list[Event] = field(default_factory=list)
    hangs: list[Event] = field(default_factory=list)
    incomplete: list[Event] = field(default_factory=list)
    wrappers: list[Event] = field(default_factory=list)
    aftermath: list[Event] = field(default_factory=list)
    noise: list[Event] = field(default_factory=list)
    cut: list[Trace] = field(default_factory=list)


@dataclass
class Ending:
    """How the main log ends: byte positions within the whole log, -1 for what is not there.

    ``failed``: the exit status, which stands in no log, was not 0.
    """

    completed: int
    exit_zero: int
    exit_failed: int
    last_progress: int
    last_step: int | None
    planned: int | None
    failed: bool = False


def ending(scan: LogScan) -> Ending:
    """How one log ends. What exited with a failure before the last step, in a run that completed, was a helper."""
    base = scan.tail_offset
    completed, zero, failed = (mark + base if mark >= 0 else -1 for mark in end_marks(scan.tail))
    progress = last_progress(scan.tail)
    reached = progress[0] + base if progress else -1
    if failed < min(completed, reached):
        failed = -1
    return Ending(
        completed,
        zero,
        failed,
        reached,
        progress[1] if progress else None,
        progress[2] if progress else None,
    )


def sort(scans: Sequence[LogScan]) -> Sorted:
    """Give every event its role: by the best rule that applies to its line, else as an exception by its frames."""
    found = Sorted()
    for scan in scans:
        by_line: dict[int, list[Event]] = {}
        for event in scan.events:
            by_line.setdefault(event.line.number, []).append(event)
        for events in by_line.values():
            _sort_line(events, found)
        found.cut += [t for t in scan.traces if not t.exception_line and not t.ignored and t.frames]
    return found


def outlive(found: Sorted, end: Ending) -> None:
    """An interruption between a run's completion and its good exit stopped something else: it is noise."""
    after = [e for e in found.incomplete if e.file == 0 and 0 <= end.completed < e.offset < end.exit_zero]
    found.incomplete = [e for e in found.incomplete if e not in after]
    found.noise += after


def _sort_line(events: list[Event], found: Sorted) -> None:
    ruled = [event for event in events if event.rule is not None and _applies(event.rule, event)]
    event = max(ruled, key=lambda e: _weight(e.rule), default=events[0])
    rule = event.rule if ruled else None
    if event.trace is not None and event.trace.ignored:
        found.noise.append(event)
    elif rule is None:
        if event.rule is None or is_exception(event):
            _generic(event, found)
    elif rule.metric:
        found.metrics += [other for other in ruled if other.rule is not None and other.rule.metric]
    elif rule.role == "cause" and rule.boundary is Boundary.HANG and rule.subkind == "nccl-watchdog":
        found.hangs.append(event)
    elif rule.role == "cause" and rule.boundary is Boundary.INCOMPLETE:
        found.incomplete.append(event)
    elif rule.role == "cause":
        boundary, subkind = _whose(rule, event)
        hard = rule.strength >= 2 and event.line.level not in MILD
        found.candidates.append(
            Candidate(event, boundary, subkind, rule, 10.0 * rule.strength, hard, [rule.id])
        )
    elif rule.role == "wrapper":
        found.wrappers.append(event)
    elif rule.role == "aftermath":
        found.aftermath.append(event)
    else:
        found.noise.append(event)


def _whose(rule: Rule, event: Event) -> tuple[Boundary, str]:
    """Boundary and sub-kind: the rule's, or for general words those of the code that the exception came from."""
    found = owner("", event.trace) if rule.by_frames else None
    if found is None or found.subkind == "script" or found.boundary is rule.boundary:
        return rule.boundary, rule.subkind
    return found.boundary, found.subkind


def _weight(rule: Rule | None) -> tuple[int, float, int]:
    if rule is None:
        return (0, 0, 0)
    role = {"noise": 3, "wrapper": 2, "cause": 1, "aftermath": 1}[rule.role]
    if rule.role == "cause":
        narrow = bool(rule.frames) + bool(rule.stages) + rule.built
        return (2 if rule.strength > 3 else 1, rule.strength + 0.5 * narrow, role)
    return (2 if rule.strength >= 3 else 0, rule.strength, role)


def _applies(rule: Rule, event: Event) -> bool:
    if rule.stages and event.stage and event.stage not in rule.stages:
        return False
    if rule.built and not event.built:
        return False
    if not rule.frames:
        return True
    path = "\n".join(trace.path for trace in reversed(_lineage(event.trace)))
    return compile_pattern(rule.frames).search(path.encode()) is not None


def _lineage(trace: Trace | None) -> list[Trace]:
    """A traceback and what it was raised from, nearest first; remote parents only."""
    found: list[Trace] = []
    while trace is not None and len(found) < 8:
        found.append(trace)
        trace = trace.parent if trace.relation == "remote" else None
    return found


def is_exception(event: Event) -> bool:
    return event.trace is not None and event.trace.exception_line == event.line.number


def _generic(event: Event, found: Sorted) -> None:
    trace = event.trace
    if trace is not None and trace.exception_line != event.line.number:
        return
    name = trace.name if trace is not None else event.line.text.split(":")[0].split("(")[0].rsplit(".", 1)[-1]
    whose = owner(name, trace)
    if whose is not None and whose.boundary is Boundary.INCOMPLETE:
        found.incomplete.append(event)
        return
    boundary = whose.boundary if whose else Boundary.UNKNOWN
    score = GENERIC if whose else UNOWNED
    candidate = Candidate(event, boundary, whose.subkind if whose else "", None, score, False)
    candidate.frame = whose.frame if whose else ""
    if trace is None:
        candidate.score -= 3
    found.candidates.append(candidate)
