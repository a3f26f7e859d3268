"""Reads dated results files: ours, and those that NeMo-RL's own fixture writes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from proveout.pytest_plugin.tracking.layout import DATED_SUFFIX

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """One test of one session: numbers only; booleans and texts are no series. Outcome empty where unknown."""

    __test__ = False

    outcome: str = ""
    metrics: dict[str, float] = {}


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One results file. ``tests`` by node id; by ``module::function`` in files that have no node ids."""

    file: str
    start_time: str
    git_commit: str = ""
    exit_status: int | str = ""
    tests: dict[str, Test] = {}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Sessions, oldest first, and a sentence for each file that could not be read."""

    sessions: tuple[Session, ...]
    unreadable: tuple[str, ...]


def load(directory: Path) -> Loaded:
    """All dated files of a directory, ordered by start time, then name."""
    sessions, unreadable = [], []
    for path in sorted(directory.glob(f"[!.]*{DATED_SUFFIX}")):
        try:
            sessions.append(_session(path))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            unreadable.append(f"{path}: left out, it is no results file: {error}")
    sessions.sort(key=lambda session: (session.start_time, session.file))
    return Loaded(tuple(sessions), tuple(unreadable))


def _session(path: Path) -> Session:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("metrics"), dict):
        raise ValueError("it has no object 'metrics'")
    own = content.get("tests")
    tests = _ours(own) if isinstance(own, dict) else _foreign(content["metrics"])
    return Session(
        file=path.name,
        start_time=str(content.get("start_time", "")),
        git_commit=str(content.get("git_commit", "")),
        exit_status=content.get("exit_status", ""),
        tests=tests,
    )


def _ours(tests: dict[str, Any]) -> dict[str, Test]:
    found = {}
    for node_id, entry in tests.items():
        metrics = _numbers(entry.get("metrics", {}))
        for name, text in entry.get("non_finite", {}).items():
            if isinstance(text, str) and text in _NON_FINITE:
                metrics[name] = _NON_FINITE[text]
        found[node_id] = Test(outcome=str(entry.get("outcome", "")), metrics=metrics)
    return found


def _foreign(metrics: dict[str, Any]) -> dict[str, Test]:
    return {key: Test(metrics=_numbers(values)) for key, values in metrics.items()}


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
