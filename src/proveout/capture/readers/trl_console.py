"""The console of transformers' Trainer and TRL: log dicts between the repaints of a progress bar.

The dicts name no step. The bar does: the trainer clears it, prints the dict and paints it again, so the first
training bar after a dict shows the step that the dict belongs to. Without a bar the dicts are counted.
"""

from __future__ import annotations

import re
from pathlib import Path

from proveout.capture.lines import Line, lines
from proveout.capture.numbers import number
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading
from proveout.domain.finding import Severity

_DICT = re.compile(r"\{['\"].*\}\s*$")
_LOGGED = re.compile(r"['\"](?:loss|epoch|train_runtime|eval_loss)['\"]: ")
_ENTRY = re.compile(r"(['\"])(.*?)\1: (?:'([^']*)'|\"([^\"]*)\"|([^,{}]+))(?:, |\}|$)")
_BAR = re.compile(r"^\s*\d{1,3}%\|[^|]*\| (\d{1,15})/(\d{1,15}) \[")


class _Log:
    """Sorts dicts and bars into runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modified = path.stat().st_mtime
        self.readings = [Reading(str(path))]
        self.total = 0
        self.at = 0
        self.counted = 0
        self.waiting: list[tuple[Line, list[tuple[str, str]]]] = []

    def bar(self, done: int, total: int, line: int) -> None:
        if self.total == 0 or (done == 0 and self.at > 0 and not self.waiting):
            if self.total:
                self.readings.append(Reading(f"{self.path}:{line}"))
            self.total, self.at = total, 0
        if total == self.total:
            self.at = max(self.at, done)
            self.settle(done)

    def entry(self, line: Line, pairs: list[tuple[str, str]]) -> None:
        self.waiting.append((line, pairs))
        if self.total == 0:
            if any(key == "loss" for key, _ in pairs):
                self.counted += 1
            self.settle(max(1, self.counted))

    def settle(self, step: int) -> None:
        for line, pairs in self.waiting:
            for key, text in pairs:
                value = number(text)
                if value is not None:
                    self.readings[-1].add(key, step, value, self.modified)
                elif text != "None":
                    self.readings[-1].note(
                        "console.value",
                        f"{text[:80]!r} is no number; left out",
                        line=line.number,
                        metric=key[:200],
                        step=step,
                    )
        self.waiting.clear()


def read(path: Path) -> list[Reading]:
    """One reading for each training run that the log holds: each begins a progress bar of its own."""
    log = _Log(path)
    for line in lines(path):
        bar = _BAR.match(line.text)
        if bar:
            log.bar(int(bar[1]), int(bar[2]), line.number)
        elif pairs := _pairs(line.text):
            log.entry(line, pairs)
    if log.waiting:
        log.settle(log.at + 1 if log.at < log.total else log.at)
    if log.counted:
        log.readings[-1].note(
            "console.counted",
            "the log shows no progress bar: its log lines are numbered in their order, from 1",
            severity=Severity.NOTICE,
        )
    for reading in log.readings:
        reading.seen(log.modified, log.modified)
    return log.readings


def _pairs(text: str) -> list[tuple[str, str]]:
    found = _DICT.search(text) if "{" in text else None
    if found is None or not _LOGGED.search(found[0]):
        return []
    return [
        (match[2], match[3] or match[4] or (match[5] or "").strip()) for match in _ENTRY.finditer(found[0])
    ]


def recognises(path: Path, _head: bytes) -> bool:
    """Whether any line of the log is a trainer's log dict."""
    return any(_pairs(line.text) for line in lines(path))


READER = Reader("trl-console", read, recognises, "*.log")
