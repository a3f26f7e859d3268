"""What is known about each test of a session: outcome, duration, tracked metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

UNFINISHED = "unfinished"
CRASHED = "crashed"
NOT_COLLECTED = "collection error"


class TestRecord:
    """One test. ``key`` is ``module::function`` where it used the tracker; ``duration`` is in seconds."""

    __test__ = False
    __slots__ = ("duration", "key", "metrics", "outcome")

    def __init__(self) -> None:
        self.key, self.outcome, self.duration = "", UNFINISHED, 0.0
        self.metrics: dict[str, Any] = {}

    def add_phase(self, report: pytest.TestReport) -> None:
        """Take one phase (setup, call, teardown) into account; a setup starts a test afresh."""
        if report.when == "setup":
            self.outcome, self.duration = UNFINISHED, 0.0
        self.duration += report.duration
        self.outcome = _outcome(self.outcome, report)


_DECIDING = {
    ("setup", "skipped"): "skipped",
    ("setup", "failed"): "error",
    ("call", "passed"): "passed",
    ("call", "skipped"): "skipped",
    ("call", "failed"): "failed",
    ("teardown", "failed"): "error",
}
_EXPECTED_TO_FAIL = {"skipped": "xfailed", "passed": "xpassed"}


def _outcome(so_far: str, report: pytest.TestReport) -> str:
    if report.when not in ("setup", "call", "teardown"):
        return CRASHED
    phase = _DECIDING.get((report.when, report.outcome))
    if phase is None or (report.when == "teardown" and so_far == "failed"):
        return so_far
    return _EXPECTED_TO_FAIL.get(phase, phase) if hasattr(report, "wasxfail") else phase


class Records:
    """All tests that a process has seen, by node id."""

    def __init__(self) -> None:
        self.tests: dict[str, TestRecord] = {}
        self._order: dict[str, int] = {}

    def of(self, node_id: str) -> TestRecord:
        """The record of one test, created when it is first asked for."""
        record = self.tests.get(node_id)
        if record is None:
            record = self.tests[node_id] = TestRecord()
        return record

    def track(self, node_id: str, key: str, metrics: dict[str, Any]) -> None:
        """Add metrics to a test; a name that is tracked again takes the newer value."""
        record = self.of(node_id)
        record.key = key
        record.metrics.update(metrics)

    def collected(self, node_ids: Iterable[str]) -> None:
        """Remember the order of collection, in which tests are listed."""
        for node_id in node_ids:
            self._order.setdefault(node_id, len(self._order))

    def replay(self, journal: Iterable[dict[str, Any]]) -> None:
        """Add what a journal holds and this process has not seen."""
        for entry in journal:
            match entry:
                case {
                    "kind": "metric",
                    "test": str(test),
                    "key": str(key),
                    "name": str(name),
                    "value": value,
                }:
                    self.track(test, key, {name: value})
                case {"kind": "outcome", "test": str(test), "outcome": str(outcome), "duration": duration}:
                    record = self.of(test)
                    if record.outcome == UNFINISHED:
                        record.outcome, record.duration = outcome, float(duration)

    def in_order(self) -> list[tuple[str, TestRecord]]:
        """All tests in the order of collection; those never collected here come last, by node id."""
        last = len(self._order)
        return sorted(self.tests.items(), key=lambda test: (self._order.get(test[0], last), test[0]))
