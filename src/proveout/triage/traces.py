"""Python tracebacks put together per source, although several processes print into one log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from proveout.triage.lines import Line

HEADER = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:,)? in (?P<function>.*)')
_BARE_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)')
EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*?(?:Error|Exception|Interrupt|Exit|Died|Timeout|Exhausted|"
    r"Failure|Unavailable|Shards|Iteration|Crashed)(?:\((?P<inner>\w+)\))?"
    r"(?:\[[^\]]*\])?|Exception)(?::\s?(?P<message>.*))?$"
)
_LOOSE_EXCEPTION = re.compile(
    r"(?P<type>(?:[a-z_]\w*\.)+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)(?P<inner>)(?:: ?(?P<message>.*))?$"
)
_CHAIN = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_REMOTE = re.compile(r"\bray::\S+\(\) \((?:pid|actor_id)=")
_CAUGHT = re.compile(r"\b(?:Import of \S+ from \S+ failed|[Oo]ptional (?:import|package|dependency))")
_GIVE_UP_AFTER = 3000
_MAX_FRAMES = 200


def _installed(file: str) -> str:
    """A frame's file; of an installed package without the environment's path, whose names say nothing."""
    start = max(file.rfind("/site-packages/"), file.rfind("/dist-packages/"))
    return file[start + 1 :] if start >= 0 else file


@dataclass
class Trace:
    """One traceback: frames outermost first, then the exception. ``exception_line`` 0: it was cut off.

    ``statement`` is the line of code that the last frame shows, ``said`` the first line after the exception.
    """

    source: str
    rank: int | None
    header_line: int
    frames: list[tuple[str, str]] = field(default_factory=list)
    type: str = ""
    inner: str = ""
    message: str = ""
    exception_line: int = 0
    line: Line | None = None
    parent: Trace | None = None
    relation: str = ""
    ignored: bool = False
    last_seen: int = 0
    statement: Line | None = None
    said: Line | None = None

    @property
    def path(self) -> str:
        """All frames as text, outermost first, for patterns that ask where an exception came from."""
        return "\n".join(f"{file}:{function}" for file, function in self.frames)

    @property
    def name(self) -> str:
        """The exception's class without its module."""
        return self.type.split("(")[0].rsplit(".", 1)[-1]


class Assembler:
    """Feeds on lines in file order; ``closed`` holds what is complete, ``finish`` gives back the rest."""

    def __init__(self) -> None:
        self.open: dict[str, Trace] = {}
        self.closed: list[Trace] = []
        self._just: dict[str, Trace] = {}
        self._relation: dict[str, str] = {}
        self._ignored_at: dict[str, int] = {}
        self._latest: Trace | None = None

    @property
    def busy(self) -> bool:
        """Whether lines without any hit still matter."""
        return bool(self.open or self._just)

    def feed(self, line: Line) -> Trace | None:
        """Take one line; the traceback that it belongs to, or None."""
        stripped = line.text.strip()
        if stripped.startswith("Exception ignored in"):
            self._ignored_at[line.source] = line.number
        if stripped.endswith(HEADER):
            return self._begin(line)
        trace = self.open.get(line.source)
        if trace is not None:
            return self._continue(trace, line, line.text, stripped)
        if _REMOTE.search(stripped):
            return self._begin(line)
        just = self._just.get(line.source)
        if just is not None:
            return self._after(just, line, stripped)
        return self._adopt(line, stripped)

    def _after(self, just: Trace, line: Line, stripped: str) -> Trace | None:
        """A line of a source whose traceback has just ended: a chain, frames of a remote one, or its message."""
        since, inside = line.number - just.last_seen, line.text.startswith((" ", "\t"))
        trace: Trace | None = None
        if stripped in _CHAIN:
            self._relation[line.source] = _CHAIN[stripped]
            trace = just
        elif _FRAME.match(line.text) and just.frames and since < 6:
            trace = self._reopen(just, line)
        elif since > 400:
            del self._just[line.source]
        elif stripped and not inside and EXCEPTION.match(stripped):
            trace = self._follow(just, line, stripped)
        elif stripped and since < 40 and just.exception_line:
            just.said = just.said or line
            just.last_seen = line.number
            trace = just if inside else None
        return trace

    def finish(self) -> list[Trace]:
        """Everything, tracebacks without an exception line included."""
        self.closed.extend(self.open.values())
        self.open, self._just = {}, {}
        return self.closed

    def tick(self, number: int) -> None:
        """Give up on tracebacks whose source has said nothing for thousands of lines."""
        for source, trace in list(self.open.items()):
            if number - trace.last_seen > _GIVE_UP_AFTER:
                self.closed.append(self.open.pop(source))
        for source, trace in list(self._just.items()):
            if number - trace.last_seen > 400:
                del self._just[source]

    def _begin(self, line: Line) -> Trace:
        source = line.source
        if source in self.open:
            self.closed.append(self.open.pop(source))
        relation = self._relation.pop(source, "")
        trace = Trace(source, line.rank, line.number, last_seen=line.number, relation=relation)
        trace.parent = self._just.get(source) if relation else None
        caught = _CAUGHT.search(line.text) is not None
        trace.ignored = caught or self._ignoring(line)
        self._just.pop(source, None)
        self.open[source] = self._latest = trace
        return trace

    def _ignoring(self, line: Line) -> bool:
        """Whether Python has just said that it ignores an exception."""
        return line.number - self._ignored_at.get(line.source, -9) <= 2

    def _adopt(self, line: Line, stripped: str) -> Trace | None:
        """The first frame of a traceback whose header alone carried a prefix."""
        latest = self._latest
        if (
            latest is None
            or latest.frames
            or latest.header_line != line.number - 1
            or not _FRAME.match(line.text)
        ):
            return None
        self.open.pop(latest.source, None)
        latest.source = line.source
        self.open[line.source] = latest
        return self._continue(latest, line, line.text, stripped)

    def _reopen(self, just: Trace, line: Line) -> Trace:
        relation = self._relation.pop(line.source, "remote")
        trace = Trace(line.source, line.rank, line.number, last_seen=line.number, relation=relation)
        trace.parent, trace.ignored = just, just.ignored
        self._just.pop(line.source, None)
        self.open[line.source] = trace
        return self._continue(trace, line, line.text, line.text.strip())

    def _follow(self, just: Trace, line: Line, stripped: str) -> Trace:
        trace = Trace(line.source, line.rank, line.number, last_seen=line.number, relation="remote")
        trace.frames, trace.parent, trace.ignored = just.frames, just, just.ignored or self._ignoring(line)
        self._end(trace, line, stripped)
        return trace

    def _continue(self, trace: Trace, line: Line, text: str, stripped: str) -> Trace:
        trace.last_seen = line.number
        frame = _FRAME.match(text) or _BARE_FRAME.match(text)
        if frame:
            if len(trace.frames) < _MAX_FRAMES:
                trace.frames.append((_installed(frame["file"]), frame.groupdict().get("function") or ""))
            trace.statement = None
            return trace
        if trace.statement is None and trace.frames and text.startswith((" ", "\t")):
            trace.statement = line
        if not stripped or text.startswith((" ", "\t")) or stripped in _CHAIN:
            return trace
        match = EXCEPTION.match(stripped) or (_LOOSE_EXCEPTION.match(stripped) if trace.frames else None)
        if match and (trace.frames or "Error" in match["type"]):
            self._end(trace, line, stripped, match)
            self.open.pop(trace.source, None)
        return trace

    def _end(self, trace: Trace, line: Line, stripped: str, match: re.Match[str] | None = None) -> None:
        match = match or EXCEPTION.match(stripped)
        if match is not None:
            trace.type, trace.message = match["type"], match["message"] or ""
            trace.inner = match["inner"] or ""
        trace.exception_line, trace.line, trace.last_seen = line.number, line, line.number
        self.closed.append(trace)
        self._just[trace.source] = trace
