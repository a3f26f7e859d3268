"""The order of possible causes: cause before aftermath, the process that died first, and what the run outlived."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proveout.domain.finding import Boundary
from proveout.triage.decide import MILD, Candidate, Ending, Sorted, is_exception
from proveout.triage.scan import Event, LogScan
from proveout.triage.stages import steps_shown
from proveout.triage.traces import Trace

_INNER = re.compile(r"RayTaskError\((\w+)\)")
_DEAD_PID = re.compile(r"Worker PID: (\d+)|\bpid: (\d+)|\(pid=(\d+)[,)]")
_FILE_PID = re.compile(r"-(\d+)\.(?:err|out|log)$")
_LINE_PID = re.compile(r"pid=(\d+)")
_KILLED = re.compile(r"[Kk]illed process (\d+)")
_LIVED_WITH = re.compile(
    r"(?i)\bretry(?:ing)?\b|will retry|attempt \d+|\bignor(?:ed|ing)\b|\bskipp(?:ed|ing)\b|"
    r"\b(?:User|Future|Runtime)Warning: "
)
_FIRST_RANK = re.compile(rb"Root Cause \(first observed failure\)[^|]{0,600}?\brank +: (\d+)")
_LOOKUPS = ("KeyError", "AttributeError", "IndexError", "ImportError", "ModuleNotFoundError", "StopIteration")
"""Classes that code raises and handles as a matter of course."""
CHAINED = ("cause", "context")
LATER = 0.35
LIVED_WITH_ONCE = 21
BESIDE = 1 << 16
SURVIVED = 25
STEPS_SURVIVED = 2
PRINTED_SURVIVED = 5
"""Where steps have no numbers: a loop may print two lines for one."""


@dataclass
class _Scene:
    """What is known of the whole run when one candidate is weighed."""

    scans: Sequence[LogScan]
    end: Ending
    inner: set[str]
    pids: set[str]
    shutdown: int | None
    hang: int | None
    children: dict[int, Trace]
    firm: set[int]
    owned: set[int]
    origins: set[str]
    first_ranks: set[int]

    @cached_property
    def steps(self) -> list[int]:
        """Where finished steps are printed at the end of the main log: bytes within the whole log."""
        return [self.scans[0].tail_offset + at for at in steps_shown(self.scans[0].tail)]


def rank(found: Sorted, scans: Sequence[LogScan], end: Ending) -> list[Candidate]:
    """The candidates, best first; those that the run outlived come last with a score below zero."""
    inner, pids = _blame(found)
    scene = _Scene(
        scans,
        end,
        inner,
        pids,
        min((e.offset for e in found.aftermath if e.file == 0), default=None),
        min((e.offset for e in found.hangs if e.file == 0), default=None),
        {id(t.parent): t for s in scans for t in s.traces if t.parent is not None},
        {
            id(c.trace)
            for c in found.candidates
            if c.rule is not None and c.rule.strength >= 2 and is_exception(c.event)
        },
        {
            id(c.trace)
            for c in found.candidates
            if c.trace is not None
            and c.boundary not in (Boundary.ENVIRONMENT, Boundary.UNKNOWN)
            and c.trace.name not in _LOOKUPS
        },
        {_said(c) for c in found.candidates if is_exception(c.event) and not _handed_on(c)},
        {int(rank) for scan in scans for rank in _FIRST_RANK.findall(scan.tail)},
    )
    for candidate in found.candidates:
        candidate.event = _of_first_rank(candidate, scene)
        _by_trace(candidate, scene)
        _by_place(candidate, scene)
        died = _died_with(candidate.event, found, scene)
        if _outlived(candidate, end, died):
            candidate.score -= 100
            candidate.why.append("the run went on afterwards and ended by itself")
        elif not died and _survived(candidate.event, scene):
            candidate.survived = True
            candidate.score -= SURVIVED
            candidate.why.append("the run trained on for steps afterwards")
    timed = all(c.event.time is not None for c in found.candidates)
    ordered = sorted(found.candidates, key=lambda c: _order(c.event, timed))
    for position, candidate in enumerate(ordered):
        candidate.score -= min(position, 20) * LATER
    return sorted(ordered, key=lambda c: -c.score)


def earliest(best: Candidate, alive: Sequence[Candidate]) -> Candidate:
    """Where one rule names the same failure several times, the first time that it was printed.

    What a process says just before its own exception tells less than the exception.
    """
    line, raised = best.event.line, is_exception(best.event)
    same = [
        other
        for other in alive
        if best.rule is not None
        and other.rule is best.rule
        and other.boundary is best.boundary
        and other.event.file == best.event.file
        and not _mild(other.event)
        and (
            is_exception(other.event)
            or (other.event.trace is None and not (raised and other.event.line.source == line.source))
        )
        and (other.event.line.rank == line.rank or None in (other.event.line.rank, line.rank))
    ]
    return min(same, key=lambda other: other.event.order, default=best)


def _order(event: Event, timed: bool) -> tuple[float, int, int]:
    return (event.time if timed and event.time is not None else 0.0, event.file, event.order)


def _by_trace(candidate: Candidate, scene: _Scene) -> None:
    """Where the exception stands in its chain, and whether the driver reports its class."""
    trace = candidate.trace
    if is_exception(candidate.event):
        candidate.score += 1.5
    if trace is None:
        return
    if any(link.name in scene.inner for link in (trace, *descendants(trace, scene.children))):
        candidate.score += 4
        candidate.hard = True
        candidate.why.append("the class that the driver reports")
    if trace.relation in CHAINED and id(trace.parent) in scene.firm:
        candidate.score -= 12
        candidate.why.append("raised from another exception that a rule knows")
    if (
        trace.relation == "context"
        and candidate.boundary is Boundary.ENVIRONMENT
        and id(trace.parent) in scene.owned
    ):
        candidate.score -= 12
        candidate.why.append("raised while a failure of the loop's own code was handled")
    child = scene.children.get(id(trace))
    if _handed_on(candidate) and _said(candidate) in scene.origins:
        candidate.score -= 6
        candidate.why.append("the same exception stands where it was raised")
    if candidate.rule is None and child is not None:
        candidate.score -= {"context": 1, "remote": 3}.get(child.relation, 0)


def _by_place(candidate: Candidate, scene: _Scene) -> None:
    """Who printed it, how, and what had happened before."""
    event = candidate.event
    if _pid(event, scene.scans) & scene.pids:
        candidate.score += 4
        candidate.why.append("printed by the worker that died")
    if event.count == 1 and event.trace is None and _LIVED_WITH.search(event.line.text) is not None:
        candidate.score -= LIVED_WITH_ONCE
    elif _mild(event):
        candidate.score -= 10
    if candidate.rule is not None or event.file != 0:
        return
    if scene.hang is not None and event.offset > scene.hang:
        candidate.score -= 8
    if scene.shutdown is not None and event.offset > scene.shutdown:
        candidate.score -= 2


def _mild(event: Event) -> bool:
    """Whether a line tells of something that its program can live with: a warning, or what is tried again."""
    return event.line.level in MILD or _LIVED_WITH.search(event.line.text) is not None


def _of_first_rank(candidate: Candidate, scene: _Scene) -> Event:
    """The event as the rank printed it that torchrun saw fail first, where several ranks printed the same."""
    event = candidate.event
    if not scene.first_ranks or event.count == 1 or not is_exception(event):
        return event
    for trace in scene.scans[event.file].traces:
        same = trace.line is not None and trace.line.text.strip() == _said(candidate)
        if same and trace.rank in scene.first_ranks and trace.line is not None:
            return replace(event, line=trace.line, trace=trace)
    return event


def _said(candidate: Candidate) -> str:
    return candidate.event.line.text.strip()


def _handed_on(candidate: Candidate) -> bool:
    """Whether a traceback is what Ray shows a driver of an exception that a worker raised."""
    return candidate.trace is not None and candidate.trace.relation == "remote"


def descendants(trace: Trace, children: dict[int, Trace]) -> list[Trace]:
    """What was raised from a traceback's exception, nearest first."""
    found: list[Trace] = []
    child = children.get(id(trace))
    while child is not None and len(found) < 8:
        found.append(child)
        child = children.get(id(child))
    return found


def _outlived(candidate: Candidate, end: Ending, died: bool) -> bool:
    event = candidate.event
    if event.file != 0:
        return False
    went_on = end.last_progress > event.last_offset and (
        end.last_step is None or event.step is None or end.last_step > event.step
    )
    if went_on and not died and _mild(event):
        return True
    finished = end.completed > event.last_offset or end.exit_zero > event.last_offset
    if end.exit_failed > max(event.last_offset, end.exit_zero):
        return False
    if end.failed and end.exit_zero < 0:
        return went_on and (finished or not candidate.hard)
    if candidate.hard or (died and went_on):
        return (went_on and finished) or end.exit_zero > event.last_offset
    return went_on or finished or (end.completed >= 0 and event.offset > end.completed)


def _survived(event: Event, scene: _Scene) -> bool:
    """Whether whole further steps were finished after something that happened once."""
    end = scene.end
    if event.file != 0 or event.last_offset != event.offset:
        return False
    if event.step is None or end.last_step is None:
        return len(scene.steps) - bisect_right(scene.steps, event.offset) >= PRINTED_SURVIVED
    return end.last_progress > event.offset and end.last_step - event.step >= STEPS_SURVIVED


def _died_with(event: Event, found: Sorted, scene: _Scene) -> bool:
    """Whether processes died with it: said so before another step was finished, or a driver reports its class."""
    following = bisect_right(scene.steps, event.offset)
    known = event.offset >= scene.scans[0].tail_offset and following < len(scene.steps)
    stop = scene.steps[following] if known else event.offset + BESIDE
    named = event.trace is not None and event.trace.name in scene.inner
    return any(
        other.file == event.file == 0
        and (event.offset < other.offset < stop or _same_step(event, other))
        and (other.offset > event.offset or (named and event.offset - other.offset < BESIDE))
        for other in (*found.wrappers, *found.aftermath)
    )


def _same_step(event: Event, other: Event) -> bool:
    return event.step is not None and other.step == event.step


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
    return pids | set(_LINE_PID.findall(event.line.source)) | set(_KILLED.findall(event.line.text))
