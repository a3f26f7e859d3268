"""One pass over one log: every rule at once on pieces of it, then one by one where something was found."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from proveout.triage import cache, finder
from proveout.triage.catalog import Catalog, Rule, compile_pattern, line_pattern
from proveout.triage.finder import Find
from proveout.triage.lines import Line, last_time, parse, segment
from proveout.triage.reader import BLOCK, LARGE, OVERLAP, Block, blocks, open_log
from proveout.triage.stages import StageTracker, last_progress, last_stage, shows_provider
from proveout.triage.traces import Assembler, Trace

PIECE = 1 << 16
CHUNK = 4096
LONGEST_PIECE = 1 << 16
KEEP_FIRST = 24
KEEP_LAST = 24
BURST = 1 << 18
NEAR = 1 << 18
TAIL = BLOCK
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
    built: bool = False
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

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._texts = [line_pattern(rule.pattern) for rule in catalog.rules]
        self._texts += [line_pattern(_TRACE_HEADER), line_pattern(r"[\w.]" + _EXCEPTION)]
        self._examples = [(i, line) for i, rule in enumerate(catalog.rules) for line in rule.positives]
        self._extra = (compile_pattern(_TRACE_HEADER), compile_pattern(_NAMED_EXCEPTION))

    @cached_property
    def _quick(self) -> Find | None:
        return finder.kept(self._texts, self._examples)

    @cached_property
    def _plain(self) -> Find:
        return finder.plain(self._texts)

    def which(self, piece: bytes) -> Sequence[int]:
        """The indices of the patterns that match somewhere in a piece of a log."""
        return (self._quick or self._plain)(piece)

    def prepare(self) -> None:
        """Compile for the fastest search, unless that is done; kept for later processes. Takes seconds."""
        if self._quick is None:
            self._quick = finder.compiled(self._texts, self._examples)

    def prepare_next(self) -> None:
        """Prepare for the processes that come after this one, where something can be kept for them."""
        if cache.writable():
            self.prepare()

    def marked(self, data: bytes) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """The lines with a hit, in order: where each begins and ends, and (pattern, byte in the line) of its hits.

        A very long line counts as pieces of ``LONGEST_PIECE`` bytes.
        """
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for begin, stop in _pieces(data, 0, len(data), PIECE):
            piece = data[begin:stop]
            for index in sorted(self.which(piece)):
                for start, end, at in self._lines_of(index, piece):
                    found.setdefault((begin + start, begin + end), []).append((index, at))
        return [(start, end, hits) for (start, end), hits in sorted(found.items())]

    def _lines_of(self, index: int, piece: bytes) -> Iterator[tuple[int, int, int]]:
        """The lines of a piece that one pattern matches: begin, end, and where in the line."""
        matcher, position = self._matcher(index), 0
        while position < len(piece) and (match := matcher.search(piece, position)) is not None:
            start = piece.rfind(b"\n", 0, match.start()) + 1
            end = piece.find(b"\n", match.start())
            position = end + 1 if end >= 0 else len(piece)
            line = piece[start : position - 1 if end >= 0 else position]
            own = matcher.search(line)
            if own is not None:
                yield start, start + len(line), own.start()

    def _matcher(self, index: int) -> Any:
        own = index - len(self.catalog.rules)
        return self._extra[own] if own >= 0 else self.catalog.matcher(index)

    def starts_as_exception(self, line: Line) -> bool:
        """Whether a line's text begins with the name of an exception."""
        match = self._extra[1].search(line.text.encode())
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
        self._known: dict[tuple[str, str], Event] = {}
        self._first: dict[str, list[Event]] = {}
        self._last: dict[str, deque[tuple[tuple[str, str], Event]]] = {}
        self._order = 0
        self._before = b""
        self._looked = 0
        self._built = False
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
            self._built = result.tracker.built
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
        if block.offset >= LARGE:
            self.scanner.prepare()
        position, number = 0, block.line
        for start, end, hits in self.scanner.marked(block.data):
            position, number = self._until(start, position, number, block.data)
            number += block.data.count(b"\n", position, start)
            self._line(block, start, end, number, hits)
            after = max(position, end + 1)
            number += block.data.count(b"\n", max(position, start), after)
            position = after
        self._until(len(block.data), position, number, block.data)

    def _until(self, stop: int, position: int, number: int, data: bytes) -> tuple[int, int]:
        """Read lines without a hit for as long as a traceback is open, at most to ``stop``; where that ended, and
        the number of the line there."""
        while self.assembler.busy and position < stop:
            end = data.find(b"\n", position, stop)
            end = end if end >= 0 else stop
            if end > position:
                self.assembler.feed(parse(segment(data[position:end], 0)[:LONGEST_PIECE], number))
            number += 1
            position = end + 1
        return position, number

    def _line(self, block: Block, start: int, end: int, number: int, hits: list[tuple[int, int]]) -> None:
        line = parse(segment(block.data[start:end], hits[0][1])[:LONGEST_PIECE], number)
        self._note(block, start, line, self.assembler.feed(line), hits)

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
        if rule is None or rule.role != "noise":
            self._where(event, block, at)
        if rule is not None and rule.built:
            event.built = self._built or shows_provider(block.data[:at])
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
    """Whether a file begins as no text does; NULs at its very start are what a truncated log has."""
    sample = data.lstrip(b"\0")[:8192]
    if not sample:
        return False
    odd = sum(1 for byte in sample if byte < 9 or 14 <= byte < 27 or 28 <= byte < 32)
    return odd > len(sample) // 10
