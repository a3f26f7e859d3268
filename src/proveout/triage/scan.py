"""One pass over one log: every rule at once on small chunks, then line by line where something was found."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from proveout.triage.catalog import Catalog, Rule, line_pattern
from proveout.triage.lines import Line, last_time, parse, segment
from proveout.triage.reader import BLOCK, OVERLAP, Block, blocks, open_log
from proveout.triage.stages import StageTracker, last_progress, last_stage
from proveout.triage.templates import Searches, Templates, search
from proveout.triage.traces import HEADER, Assembler, Trace

COARSE = 1 << 16
CHUNK = 4096
LONGEST_PIECE = 1 << 16
KEEP_FIRST = 24
KEEP_LAST = 24
BURST = 1 << 18
NEAR = 1 << 18
TAIL = BLOCK
SMALL = 4 * BLOCK
_TRACE_HEADER = r"Traceback \(most recent call last\):"
_EXCEPTION = (
    r"(?:Error|Exception|KeyboardInterrupt|SystemExit|Died|Timeout|Failure|Exhausted|"
    r"Unavailable|StopIteration|Crashed)(?:\([A-Za-z_]\w*\))?(?:\[[^\]\n]*\])?(?::|$)"
)
_NAMED_EXCEPTION = r"\b[A-Za-z_][\w.]*" + _EXCEPTION
_DIGITS = re.compile(r"\d+|0x[0-9a-f]+")


@dataclass
class Event:
    """A line that means something: by a rule, or because it is an exception (``rule`` is None)."""

    file: int
    line: Line
    rule: Rule | None
    trace: Trace | None
    offset: int
    stage: str = ""
    step: int | None = None
    time: float | None = None
    count: int = 1
    order: int = 0
    last_line: int = 0
    last_offset: int = 0


@dataclass
class LogScan:
    """What one pass over one log showed."""

    path: Path
    index: int
    size: int = 0
    lines: int = 0
    events: list[Event] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    tracker: StageTracker = field(default_factory=StageTracker)
    tail: bytes = b""
    tail_offset: int = 0
    binary: bool = False


class Scanner:
    """The multi-pattern engine for one catalogue; built once, used for any number of logs."""

    def __init__(self, catalog: Catalog, *, skip_repeats: bool = True) -> None:
        import re2

        self.catalog = catalog
        self.skip_repeats = skip_repeats
        patterns = [line_pattern(rule.pattern) for rule in catalog.rules]
        self._header, self._exception = len(patterns), len(patterns) + 1
        self._patterns = [*patterns, line_pattern(_TRACE_HEADER), line_pattern(_EXCEPTION)]
        self.match = search(self._patterns)
        self._exception_rx = re2.compile(line_pattern(_NAMED_EXCEPTION).encode())

    @cached_property
    def searches(self) -> Searches:
        """What is needed to leave out repetitions; built for large logs only."""
        return Searches(self._patterns, self.match)

    def hits(self, raw: bytes) -> list[tuple[int, int]]:
        """What matches this one line, each with the byte at which it does."""
        found = []
        for index in self.match(raw) or ():
            if index == self._header:
                at = raw.find(HEADER.encode())
            elif index == self._exception:
                match = self._exception_rx.search(raw)
                at = match.start() if match else -1
            else:
                match = self.catalog.matcher(index).search(raw)
                at = match.start() if match else -1
            if at >= 0:
                found.append((index, at))
        return found

    def starts_as_exception(self, line: Line) -> bool:
        """Whether a line's text begins with the name of an exception."""
        match = self._exception_rx.search(line.text.encode())
        return match is not None and match.start() == 0

    def scan(self, path: Path, index: int = 0) -> LogScan:
        """Read one log to its end as it is now. Raises UsageError for what cannot be opened."""
        with open_log(path) as stream:
            return _Pass(self, path, index).run(stream)


class _Pass:
    def __init__(self, scanner: Scanner, path: Path, index: int) -> None:
        self.scanner = scanner
        self.result = LogScan(path, index)
        self.assembler = Assembler()
        self._rules = scanner.catalog.rules
        self._templates: Templates | None = None
        self._known: dict[tuple[str, str], Event] = {}
        self._first: dict[str, list[Event]] = {}
        self._last: dict[str, deque[tuple[tuple[str, str], Event]]] = {}
        self._order = 0
        self._before = b""
        self._looked = 0
        self._stage = ""
        self._step: int | None = None
        self._time: float | None = None

    def run(self, stream: IO[bytes]) -> LogScan:
        result = self.result
        last: Block | None = None
        for block in blocks(stream):
            if last is None:
                result.binary = _looks_binary(block.data)
            else:
                self._before = last.data
                self.assembler.tick(block.line)
            last = block
            result.tracker.feed(block.data)
            self._block(block)
        if last is not None:
            result.lines = last.line + last.data.count(b"\n")
            result.size = last.offset + len(last.data)
            result.tail = (self._before + last.data[last.fresh :])[-TAIL:]
            result.tail_offset = result.size - len(result.tail)
        result.traces = self.assembler.finish()
        result.events = self._events()
        return result

    def _block(self, block: Block) -> None:
        match, assembler, data = self.scanner.match, self.assembler, block.data
        number, counted = block.line, 0
        if self._templates is None and block.offset >= SMALL and self.scanner.skip_repeats:
            self._templates = Templates(self.scanner.searches)
        for begin, stop in _pieces(data, 0, len(data), COARSE):
            search_in = self._templates.hit if self._templates else match
            if not assembler.busy and not search_in(data[begin:stop]):
                continue
            for start, end in self._parts(data, begin, stop):
                hit = bool(match(data[start:end]))
                if hit or assembler.busy:
                    number += data.count(b"\n", counted, start)
                    counted = start
                    self._lines(block, start, data[start:end], number, hit)

    def _parts(self, data: bytes, begin: int, stop: int) -> Iterator[tuple[int, int]]:
        """Pieces to look at line by line: single lines with a hit, and all of them while a traceback is open."""
        for start, end in _pieces(data, begin, stop, CHUNK):
            for first, last in self._narrowed(data, start, end):
                yield first, last
                if self.assembler.busy:
                    yield last, end
                    break
            else:
                if self.assembler.busy:
                    yield start, end

    def _narrowed(self, data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The lines with a hit of a piece, found by halving it."""
        if self.assembler.busy or not self.scanner.match(data[start:end]):
            return
        middle = data.rfind(b"\n", start, (start + end) // 2) + 1
        if middle <= start:
            middle = data.find(b"\n", start, end - 1) + 1
        if middle <= start:
            yield start, end
            return
        yield from self._narrowed(data, start, middle)
        yield from self._narrowed(data, middle, end)

    def _lines(self, block: Block, start: int, chunk: bytes, number: int, hit: bool) -> None:
        at = start
        for raw in chunk.split(b"\n"):
            found = self.scanner.hits(raw) if hit and raw else []
            if found or (raw and self.assembler.busy):
                line = parse(segment(raw, found[0][1] if found else 0)[:LONGEST_PIECE], number)
                trace = self.assembler.feed(line)
                if found:
                    self._note(block, at, line, trace, found)
            number += 1
            at += len(raw) + 1

    def _note(
        self, block: Block, at: int, line: Line, trace: Trace | None, found: list[tuple[int, int]]
    ) -> None:
        rules: list[Rule | None] = [self._rules[i] for i, _ in found if i < len(self._rules)]
        is_exception = trace is not None and trace.exception_line == line.number
        if not rules and not is_exception and not self.scanner.starts_as_exception(line):
            return
        for rule in rules or [None]:
            self._event(rule, block, at, line, trace)

    def _event(self, rule: Rule | None, block: Block, at: int, line: Line, trace: Trace | None) -> None:
        offset = block.offset + at
        key = (rule.id if rule else "", _DIGITS.sub("0", line.text)[:300])
        known = self._known.get(key)
        counted = rule is None or rule.subkind != "nccl-watchdog"
        if known is not None and counted and offset - known.last_offset < BURST:
            known.count += line.repeated
            known.last_line, known.last_offset = line.number, offset
            return
        self._order += 1
        event = Event(self.result.index, line, rule, trace, offset, count=line.repeated, order=self._order)
        event.last_line, event.last_offset, event.time = line.number, offset, line.time
        if rule is None or rule.role == "cause":
            self._where(event, block, at)
        self._keep(key, event)

    def _keep(self, key: tuple[str, str], event: Event) -> None:
        """The first events of each rule stay, and of the later ones the last: memory is bounded for any log."""
        self._known[key] = event
        first = self._first.setdefault(key[0], [])
        if len(first) < KEEP_FIRST:
            first.append(event)
            return
        last = self._last.setdefault(key[0], deque())
        last.append((key, event))
        if len(last) > KEEP_LAST:
            gone, old = last.popleft()
            if self._known.get(gone) is old:
                del self._known[gone]

    def _events(self) -> list[Event]:
        kept = [event for events in self._first.values() for event in events]
        kept += [event for events in self._last.values() for _, event in events]
        return sorted(kept, key=lambda event: event.order)

    def _where(self, event: Event, block: Block, at: int) -> None:
        """Stage, step and time just before byte ``at`` of a block; only what is new since the last call is read."""
        size = min(NEAR, block.offset + at - self._looked)
        before = block.data[max(0, at - size) : at]
        if len(before) < size:
            before = self._before[len(before) - size :] + before
        self._looked = block.offset + at
        self._stage = last_stage(before) or self._stage
        progress = last_progress(before)
        if progress is not None:
            self._step = progress[1]
        self._time = event.line.time or last_time(before[-CHUNK:]) or self._time
        event.stage, event.step, event.time = self._stage, self._step, self._time


def _pieces(data: bytes, position: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a part of a block into pieces of ``size`` at line ends; a very long line is cut with an overlap."""
    while position < stop:
        end = data.rfind(b"\n", position, min(stop, position + size)) + 1
        if end <= position:
            end = data.find(b"\n", position, min(stop, position + LONGEST_PIECE)) + 1
        if end <= position:
            end = min(stop, position + LONGEST_PIECE)
            yield position, end
            if end >= stop:
                return
            position = end - OVERLAP
            continue
        yield position, end
        position = end


def _looks_binary(data: bytes) -> bool:
    sample = data[:8192]
    if not sample:
        return False
    odd = sum(1 for byte in sample if byte < 9 or 14 <= byte < 27 or 28 <= byte < 32)
    return odd > len(sample) // 10
