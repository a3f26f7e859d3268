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

_LOGGED = re.compile(r"['\"](?:loss|epoch|train_runtime|eval_loss)['\"]: ")
_ENTRY = re.compile(
    r"(?:'([^']{1,200})'|\"([^\"]{1,200})\"): "
    r"(?:'([^']{0,200})'|\"([^\"]{0,200})\"|([^,{}'\"]{1,200}))(?=, |\}|$)"
)
_BAR = re.compile(r"^\s*\d{1,3}%\|[^|]*\| (\d{1,15})/(\d{1,15}) \[")
_TRAINING = {"loss", "grad_norm", "train_runtime", "train_loss"}


class _Log:
    """Sorts dicts and bars into runs. ``fresh`` is the line of a bar that has logged nothing yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modified = path.stat().st_mtime
        self.readings = [Reading(str(path))]
        self.total = self.at = self.trained = self.counted = self.fresh = 0
        self.waiting: list[tuple[Line, list[tuple[str, str]]]] = []

    def bar(self, done: int, total: int, line: int) -> None:
        begins = done == 0 and (self.at > 0 or total != self.total)
        if self.total == 0 or (begins and not self.waiting):
            self.fresh = line if self.total else 0
            self.total, self.at = total, 0
        if total == self.total:
            self.at = max(self.at, done)
            self.settle(done)

    def entry(self, line: Line, pairs: list[tuple[str, str]]) -> None:
        self.waiting.append((line, pairs))
        if self.total == 0:
            self.counted += any(key == "loss" for key, _ in pairs)
            self.settle(max(1, self.counted))

    def settle(self, step: int) -> None:
        """Give the waiting dicts to ``step``; a bar that only evaluates belongs to the training before it."""
        for line, pairs in self.waiting:
            training = any(key in _TRAINING for key, _ in pairs)
            if training and self.fresh:
                self.readings.append(Reading(f"{self.path}:{self.fresh}"))
                self.fresh = 0
            if training or not self.fresh:
                self.trained = step
            self._take(line, pairs, self.trained)
        self.waiting.clear()

    def _take(self, line: Line, pairs: list[tuple[str, str]], step: int) -> None:
        for key, text in pairs:
            value = number(text)
            if value is not None:
                self.readings[-1].add(key, step, value, self.modified)
            elif text != "None":
                self.readings[-1].note(
                    "console.value",
                    f"{text[:80]!r} is no number; left out",
                    line=line.number,
                    metric=key,
                    step=step,
                )


def read(path: Path) -> list[Reading]:
    """One reading for each training run that the log holds: each begins a progress bar of its own."""
    log = _Log(path)
    for line in lines(path):
        bar = _BAR.match(line.text)
        if bar:
            if line.nested:
                continue
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
    start = text.find("{")
    if start < 0 or not text.rstrip().endswith("}") or not _LOGGED.search(text, start):
        return []
    return [
        (match[1] or match[2], (match[3] or match[4] or match[5] or "").strip())
        for match in _ENTRY.finditer(text, start)
    ]


def recognises(path: Path, _head: bytes) -> bool:
    """Whether any line of the log is a trainer's log dict."""
    return any(_pairs(line.text) for line in lines(path))


READER = Reader("trl-console", read, recognises, "*.log")
