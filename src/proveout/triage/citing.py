"""A line of a log as a citation: where it stands, what it means, and not more of it than can be read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from proveout.domain import redact
from proveout.domain.finding import Citation, Where
from proveout.triage.catalog import compile_pattern
from proveout.triage.decide import is_exception
from proveout.triage.scan import Event, LogScan

LONGEST_TEXT = 1200
SHOWN = 12
_SAYS_NOTHING = re.compile(r"(?:\w+\.)*AssertionError(?:: *(?:when instantiating .*)?)?$")


def cite(event: Event, what: str, scans: Sequence[LogScan]) -> Citation:
    """The line of an event, secrets taken out of it; ``what`` says what it means."""
    text = redact.text(event.line.shown)
    if len(text) > LONGEST_TEXT:
        text = _around(text, event, LONGEST_TEXT)
    where = Where(file=str(scans[event.file].path), line=event.line.number)
    return Citation(
        what=what + (f" ({event.count} times)" if event.count > 1 else ""), where=where, text=text
    )


def cite_all(events: Iterable[Event], scans: Sequence[LogScan]) -> tuple[Citation, ...]:
    """The first ``SHOWN`` of some events in the order of the logs, each line once."""
    seen: set[tuple[int, int]] = set()
    cited: list[Citation] = []
    for event in sorted(events, key=lambda e: (e.file, e.line.number)):
        place = (event.file, event.line.number)
        if place in seen or len(cited) >= SHOWN:
            continue
        seen.add(place)
        cited.append(cite(event, event.rule.explanation if event.rule else "an exception", scans))
    return tuple(cited)


def telling(event: Event) -> Event:
    """The event at the line that tells, where the exception's own has no message: the statement, or what follows."""
    trace, text = event.trace, event.line.text.strip()
    if trace is None or not is_exception(event):
        return event
    line = event.line
    if _SAYS_NOTHING.match(text):
        line = trace.statement or line
    elif text.endswith(":") and not trace.message.strip():
        line = trace.said or line
    return dataclasses.replace(event, line=line)


def _around(text: str, event: Event, size: int) -> str:
    """A long line cut to the part that the rule matched."""
    at = 0
    if event.rule is not None:
        match = compile_pattern(event.rule.pattern).search(text.encode())
        at = len(text.encode()[: match.start()].decode("utf-8", "ignore")) if match else 0
    start = max(0, at - size // 4)
    return ("..." if start else "") + text[start : start + size] + ("..." if start + size < len(text) else "")
