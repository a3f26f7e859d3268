"""From events to one answer: what can be a cause, in which order, and what the others are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from proveout.domain.finding import Boundary
from proveout.triage.catalog import Rule, compile_pattern
from proveout.triage.frames import owner
from proveout.triage.scan import Event, LogScan
from proveout.triage.stages import end_marks, last_progress
from proveout.triage.traces import Trace

_INNER = re.compile(r"RayTaskError\((\w+)\)")
_DEAD_PID = re.compile(r"Worker PID: (\d+)|\bpid: (\d+)|\(pid=(\d+)[,)]")
_FILE_PID = re.compile(r"-(\d+)\.(?:err|out|log)$")
_LINE_PID = re.compile(r"pid=(\d+)")
_RETRY = re.compile(r"(?i)\bretry(?:ing)?\b|will retry|attempt \d+|\bignor(?:ed|ing)\b|\bskipp(?:ed|ing)\b")
GENERIC = 12.0
UNOWNED = 8.0
NEAR_END = 1 << 16


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
    """How the main log ends: byte positions within the whole log, -1 for what is not there."""

    completed: int
    exit_zero: int
    exit_failed: int
    last_progress: int
    last_step: int | None
    planned: int | None


def ending(scan: LogScan) -> Ending:
    """How one log ends."""
    near = scan.tail[-NEAR_END:]
    base = scan.size - len(near)
    completed, zero, failed = (mark + base if mark >= 0 else -1 for mark in end_marks(near))
    progress = last_progress(scan.tail)
    return Ending(
        completed,
        zero,
        failed,
        progress[0] + scan.tail_offset if progress else -1,
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


def _sort_line(events: list[Event], found: Sorted) -> None:
    ruled = [event for event in events if event.rule is not None and _applies(event.rule, event)]
    event = max(ruled, key=lambda e: _weight(e.rule), default=events[0])
    rule = event.rule if ruled else None
    if event.trace is not None and event.trace.ignored:
        found.noise.append(event)
    elif rule is None:
        if event.rule is None or _is_exception(event):
            _generic(event, found)
    elif rule.metric:
        found.metrics.append(event)
    elif rule.role == "cause" and rule.boundary is Boundary.HANG and rule.subkind == "nccl-watchdog":
        found.hangs.append(event)
    elif rule.role == "cause" and rule.boundary is Boundary.INCOMPLETE:
        found.incomplete.append(event)
    elif rule.role == "cause":
        hard = rule.strength >= 2 and event.line.level != "WARNING"
        found.candidates.append(
            Candidate(event, rule.boundary, rule.subkind, rule, 10.0 * rule.strength, hard, [rule.id])
        )
    elif rule.role == "wrapper":
        found.wrappers.append(event)
    elif rule.role == "aftermath":
        found.aftermath.append(event)
    else:
        found.noise.append(event)


def _weight(rule: Rule | None) -> tuple[int, int, int]:
    if rule is None:
        return (0, 0, 0)
    role = {"noise": 3, "wrapper": 2, "cause": 1, "aftermath": 2}[rule.role]
    if rule.role == "cause":
        return (1, rule.strength + (1 if rule.frames else 0) + (1 if rule.stages else 0), role)
    return (2 if rule.strength >= 3 else 0, rule.strength, role)


def _applies(rule: Rule, event: Event) -> bool:
    if rule.stages and event.stage and event.stage not in rule.stages:
        return False
    if not rule.frames:
        return True
    path = "\n".join(trace.path for trace in _lineage(event.trace))
    return compile_pattern(rule.frames).search(path.encode()) is not None


def _lineage(trace: Trace | None) -> list[Trace]:
    """A traceback and what it was raised from, nearest first; remote parents only."""
    found: list[Trace] = []
    while trace is not None and len(found) < 8:
        found.append(trace)
        trace = trace.parent if trace.relation == "remote" else None
    return found


def _is_exception(event: Event) -> bool:
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


def rank(found: Sorted, scans: Sequence[LogScan], end: Ending) -> list[Candidate]:
    """The candidates, best first; those that the run outlived come last with a score below zero."""
    inner, pids = _blame(found)
    shutdown = min((e.offset for e in found.aftermath if e.file == 0), default=None)
    hang_at = min((e.offset for e in found.hangs if e.file == 0), default=None)
    children = {id(t.parent): t for s in scans for t in s.traces if t.parent is not None}
    firm = {
        id(c.trace)
        for c in found.candidates
        if c.trace is not None and c.rule is not None and c.rule.strength >= 2 and _is_exception(c.event)
    }
    for candidate in found.candidates:
        event, trace = candidate.event, candidate.trace
        if trace is not None and any(link.name in inner for link in (trace, *descendants(trace, children))):
            candidate.score += 4
            candidate.hard = True
            candidate.why.append("the class that the driver reports")
        if _is_exception(event):
            candidate.score += 1.5
        chained = trace is not None and trace.relation in ("cause", "context")
        if trace is not None and chained and id(trace.parent) in firm:
            candidate.score -= 12
            candidate.why.append("raised from another exception that a rule knows")
        if _pid(event, scans) & pids:
            candidate.score += 4
            candidate.why.append("printed by the worker that died")
        if event.line.level == "WARNING" or _RETRY.search(event.line.text):
            candidate.score -= 6
        if candidate.rule is None:
            if hang_at is not None and event.file == 0 and event.offset > hang_at:
                candidate.score -= 8
            if shutdown is not None and event.file == 0 and event.offset > shutdown:
                candidate.score -= 2
            child = children.get(id(trace)) if trace is not None else None
            if child is not None and child.relation == "context":
                candidate.score -= 1
            elif child is not None and child.relation == "remote":
                candidate.score -= 3
        if _outlived(candidate, end):
            candidate.score -= 100
            candidate.why.append("the run went on afterwards and ended by itself")
    ordered = sorted(found.candidates, key=lambda c: _place(c.event))
    for position, candidate in enumerate(ordered):
        candidate.score -= min(position, 20) * 0.35
    return sorted(ordered, key=lambda c: -c.score)


def descendants(trace: Trace, children: dict[int, Trace]) -> list[Trace]:
    """What was raised from a traceback's exception, nearest first."""
    found: list[Trace] = []
    child = children.get(id(trace))
    while child is not None and len(found) < 8:
        found.append(child)
        child = children.get(id(child))
    return found


def _place(event: Event) -> tuple[float, int, int]:
    return (0.0, event.file, event.order)


def _outlived(candidate: Candidate, end: Ending) -> bool:
    event = candidate.event
    if event.file != 0:
        return False
    went_on = end.last_progress > event.last_offset and (
        end.last_step is None or event.step is None or end.last_step > event.step
    )
    finished = end.completed > event.last_offset or end.exit_zero > event.last_offset
    if end.exit_failed > max(event.last_offset, end.exit_zero):
        return False
    if candidate.hard:
        return (went_on and finished) or end.exit_zero > event.last_offset
    return went_on or finished or (end.completed >= 0 and event.offset > end.completed)


def _blame(found: Sorted) -> tuple[set[str], set[str]]:
    """Exception classes and process ids that wrappers name."""
    inner: set[str] = set()
    pids: set[str] = set()
    for event in found.wrappers:
        inner.update(_INNER.findall(event.line.text))
        if "died" in event.line.text or "Worker PID" in event.line.text:
            pids.update(pid for groups in _DEAD_PID.findall(event.line.text) for pid in groups if pid)
    return inner, pids


def _pid(event: Event, scans: Sequence[LogScan]) -> set[str]:
    named = _FILE_PID.search(scans[event.file].path.name)
    pids = {named[1]} if named else set()
    return pids | set(_LINE_PID.findall(event.line.source))
