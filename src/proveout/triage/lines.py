"""One log line taken apart: colour codes, progress bars, and the prefixes that say who printed it."""

from __future__ import annotations

import re
from typing import NamedTuple

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[@-Z\\-_]")
_REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\](?: \(Ray deduplicates logs.*)?\s*$")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1
    )
}

# Each alternative is one kind of prefix; they are stripped one after another, so they may be stacked.
_SYSLOG = re.compile(
    r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<day>\d+) (?P<clock>\d\d:\d\d:\d\d) "
    r"(?P<host>[\w.-]+) (?P<who>[\w./-]+\[\d+\]): ?"
)
_COMPOSE = re.compile(r"(?P<who>[A-Za-z][\w.-]*)\s+\| ?")
_POD = re.compile(r"\[(?P<who>pod/[^\]\s]+)\] ?")
_TAG = re.compile(r"\[(?P<who>[a-z][a-z0-9_]*(?:[-./]\w+)*)\](?<!\[c10d\]) ?(?=\S| {2,})")
_MPI = re.compile(r"\[\d+,(?P<rank>\d+)\]<std(?:out|err)>: ?")
_CRI = re.compile(r"std(?:out|err) [FP] ")
_SRUN = re.compile(r"(?P<rank>\d{1,5}): ")
_RANK = re.compile(r"\[(?:rank|default)(?P<rank>\d+)\]: ?")
_ACTOR = re.compile(
    r"\((?P<who>(?:raylet|autoscaler|bundle_reservation_check_func|pid=\d+|[\w<>.\[\]=\- ]*?"
    r"(?:\([^()]*\) )?[, ]*(?:rank=\d+,? *)?pid=\d+)[^()]*)\) ?"
)
_ISO = re.compile(
    r"\[?(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"(?:(?: [DTPE]P\d+)+(?=\]))?\]? ?"
)
_VLLM = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<md>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d) "
    r"\[[\w./-]+:\d+\] ?"
)
_LEVEL = re.compile(
    r"\[?(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|E|W)\]?(?::[\w.]+)?(?: [\w.]+\.py:\d+ --|:) ?"
)
_COLUMN = re.compile(r"[|-] ?(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL) *[|-] ?")
_C10D = re.compile(r"\[(?:rank(?P<rank>\d+)\]:\[)?(?P<level>[EWIF])(?=[ \d])")
_PYTEST = re.compile(r"E {3,}(?=[A-Za-z_][\w.]*(?:Error|Exception)\b)")
_LEVELS = {"E": "ERROR", "W": "WARNING", "WARN": "WARNING"}
_RANK_IN = re.compile(r"rank=(\d+)")
_PREFIXES = (
    _SYSLOG,
    _POD,
    _COMPOSE,
    _ACTOR,
    _RANK,
    _MPI,
    _CRI,
    _TAG,
    _SRUN,
    _ISO,
    _VLLM,
    _LEVEL,
    _COLUMN,
    _PYTEST,
)


class Line(NamedTuple):
    """A line: who printed it (``source``, ``rank``), its text without prefixes, and ``shown`` as printed.

    ``time`` is seconds within a year, None where the line carries none; ``level`` is the log level or "".
    """

    number: int
    text: str
    shown: str
    source: str
    rank: int | None
    level: str
    time: float | None
    repeated: int


def segment(raw: bytes, at: int = 0) -> bytes:
    """The part of a line between carriage returns that holds byte ``at``: a progress bar overwrites itself."""
    if b"\r" not in raw:
        return raw
    start = raw.rfind(b"\r", 0, at + 1) + 1
    end = raw.find(b"\r", max(at, start))
    return raw[start:] if end < 0 else raw[start:end]


def plain(raw: bytes) -> str:
    """Bytes as readable text: invalid UTF-8 replaced, colour codes and NULs gone."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return text.replace("\x00", "").rstrip("\r\n")


def parse(raw: bytes, number: int) -> Line:
    """Take one line apart. ``raw`` is without its line end."""
    shown = plain(raw)
    text, source, rank, level, time, repeated = shown, "", None, "", None, 1
    found = _REPEATED.search(text)
    if found:
        text, repeated = text[: found.start()], int(found[1]) + 1
    for _ in range(6):
        for prefix in _PREFIXES:
            match = prefix.match(text)
            if match is None:
                continue
            groups = match.groupdict()
            who = groups.get("who")
            if who:
                source = f"{source}/{who}" if source else who
                inner = _RANK_IN.search(who)
                rank = int(inner[1]) if inner else rank
            if groups.get("rank"):
                rank = int(groups["rank"])
                source = f"{source}/rank{rank}"
            level = _LEVELS.get(groups.get("level") or "", groups.get("level") or level)
            time = _time(groups) if time is None else time
            text = text[match.end() :]
            break
        else:
            break
    c10d = _C10D.match(text) if text.startswith("[") else None
    if c10d:
        level = _LEVELS.get(c10d["level"], level)
        if c10d["rank"]:
            rank = int(c10d["rank"])
    return Line(number, text, shown, source, rank, level, time, repeated)


def _time(groups: dict[str, str | None]) -> float | None:
    clock = groups.get("clock")
    if not clock:
        return None
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    if groups.get("date"):
        month, day = (int(part) for part in str(groups["date"]).split("-")[1:])
    elif groups.get("md"):
        month, day = (int(part) for part in str(groups["md"]).split("-"))
    else:
        month, day = _MONTHS[str(groups["mon"])], int(str(groups["day"]))
    return ((month * 31 + day) * 24 + hours) * 3600.0 + minutes * 60 + seconds


def last_time(data: bytes) -> float | None:
    """The time of the last line in ``data`` that carries one, or None."""
    for raw in reversed(data.split(b"\n")[-40:]):
        time = parse(raw[:400], 0).time if raw else None
        if time is not None:
            return time
    return None
