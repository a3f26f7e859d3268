"""Lines that look like trouble after the last training step of a run that passed: residual noise, to be named."""

from __future__ import annotations

from pathlib import Path

from proveout.domain import redact
from proveout.domain.evidence import ExitRecord
from proveout.domain.finding import Citation, Where
from proveout.triage import decide
from proveout.triage.engine import scanner
from proveout.triage.scan import Event

SHOWN = 8
_LONGEST_TEXT = 300


def residue(log: Path, ended: ExitRecord) -> tuple[Citation, ...]:
    """The first line of each kind that the run outlived, in order; empty where it did not exit with status 0.

    Raises UsageError for a log that cannot be read.
    """
    if not ended.ok:
        return ()
    scan = scanner().scan(log, 0)
    found, end = decide.sort([scan]), decide.ending(scan)
    after = max(end.last_progress, end.completed)
    events = [*found.noise, *found.wrappers, *found.aftermath, *(each.event for each in found.candidates)]
    kinds: dict[str, Citation] = {}
    for event in sorted(events, key=lambda each: each.line.number):
        if max(event.offset, event.last_offset) > after >= 0 and len(kinds) < SHOWN:
            line = event.line.number if event.offset > after else event.last_line
            kinds.setdefault(_kind(event), _cite(event, log, line))
    return tuple(kinds.values())


def _kind(event: Event) -> str:
    return event.rule.explanation if event.rule is not None else "an exception after the end"


def _cite(event: Event, log: Path, line: int) -> Citation:
    text = redact.text(event.line.shown.strip())[:_LONGEST_TEXT]
    return Citation(what=_kind(event), where=Where(file=str(log), line=line), text=text)
