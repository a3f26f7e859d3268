"""The results file: the schema of NeMo-RL's guide, and more under names of our own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from proveout.pytest_plugin.tracking.records import Records, TestRecord
from proveout.pytest_plugin.tracking.values import split_non_finite

SCHEMA = 1
NO_COVERAGE = "[n/a] run with --cov=PACKAGE"


class Head(msgspec.Struct, kw_only=True):
    """What a results file says of the session as a whole.

    ``exit_status`` is pytest's number, or ``"killed"`` where the session's end was never seen; ``start_time``
    is local time; ``coverage`` a percentage, or text that says why there is none; ``git_dirty`` None where
    git does not answer; ``notes`` say what could not be found out.
    """

    exit_status: int | str
    git_commit: str
    start_time: str
    gpu_types: list[str] = []
    coverage: float | str = NO_COVERAGE
    git_dirty: bool | None = None
    duration: float = 0.0
    workers: int = 0
    memory_source: str = ""
    notes: list[str] = []


def document(head: Head, records: Records) -> dict[str, Any]:
    """The results file of one session, ready for JSON.

    ``metrics`` has NeMo-RL's ``module::function`` keys: where several tests share one (the cases of a
    parametrised test, methods of one name) their metrics are joined, the later test's value standing, and
    ``shared_keys`` names them. ``tests`` has every test under its node id, with nothing joined. NaN and
    infinities, for which JSON has no word, are null in ``metrics`` and named in ``non_finite``.
    """
    metrics: dict[str, dict[str, Any]] = {}
    owners: dict[str, list[str]] = defaultdict(list)
    tests: dict[str, dict[str, Any]] = {}
    for node_id, record in records.in_order():
        tests[node_id] = entry = _entry(record)
        if record.key:
            metrics.setdefault(record.key, {}).update(entry["metrics"])
            owners[record.key].append(node_id)
    return {
        "exit_status": head.exit_status,
        "git_commit": head.git_commit,
        "start_time": head.start_time,
        "metrics": metrics,
        "gpu_types": head.gpu_types,
        "coverage": head.coverage,
        "proveout_schema": SCHEMA,
        "git_dirty": head.git_dirty,
        "duration": head.duration,
        "workers": head.workers,
        "memory_source": head.memory_source,
        "notes": head.notes,
        "shared_keys": {key: nodes for key, nodes in owners.items() if len(nodes) > 1},
        "tests": tests,
    }


def _entry(record: TestRecord) -> dict[str, Any]:
    entry: dict[str, Any] = {"outcome": record.outcome, "duration": round(record.duration, 6)}
    if not record.key:
        return entry
    split = {name: split_non_finite(value) for name, value in record.metrics.items()}
    entry["key"] = record.key
    entry["metrics"] = {name: clean for name, (clean, _) in split.items()}
    if lost := {name: lost for name, (_, lost) in split.items() if lost is not None}:
        entry["non_finite"] = lost
    return entry
