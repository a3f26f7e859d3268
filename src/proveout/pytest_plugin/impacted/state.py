"""What is known about tests from earlier runs: the outcome, and the content of every file when it was seen.

A test is *settled* while it passed and no file that it reaches differs from that moment.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from proveout.pytest_plugin.impacted.cache import write_atomically
from proveout.pytest_plugin.impacted.tree import Table

_VERSION = 1


class Outcome(StrEnum):
    """The last thing that is known about a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "not run yet"


class Record(msgspec.Struct, frozen=True, array_like=True):
    """A test's last outcome and the snapshot of the tree that it saw."""

    outcome: Outcome
    snapshot: str


class State(msgspec.Struct):
    """Records by test: the file relative to the root and the rest of the node id; a file alone is its collection."""

    version: int = _VERSION
    environment: str = ""
    snapshots: dict[str, Table] = {}
    tests: dict[str, Record] = {}


def load_state(path: Path) -> State:
    """The state in a file; one that is missing, damaged or of another version is as if nothing had run."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return State()
    return state if state.version == _VERSION else State()


def save_state(path: Path, state: State) -> bool:
    """Write the state atomically, without snapshots that no record names; False when the place is read-only."""
    used = {record.snapshot for record in state.tests.values()}
    state.snapshots = {name: table for name, table in state.snapshots.items() if name in used}
    return write_atomically(path, msgspec.json.encode(state))


def snapshot_id(table: Table) -> str:
    """The name of a table's content."""
    text = "\0".join(f"{blob} {path}" for path, blob in sorted(table.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def environment_id() -> str:
    """The interpreter and the versions of everything installed next to it; another one invalidates all outcomes."""
    found = {platform.python_version(), sys.platform, platform.machine()}
    for place in sys.path:
        if place.endswith(("site-packages", "dist-packages")):
            try:
                names = [entry.name for entry in Path(place).iterdir()]
            except OSError:
                continue
            found.update(name for name in names if name.endswith((".dist-info", ".egg-info", ".egg-link")))
    return hashlib.sha256("\0".join(sorted(found)).encode()).hexdigest()[:16]


def merged(
    state: State,
    table: Table,
    outcomes: Mapping[str, Outcome],
    settled: Mapping[str, Record],
    dropped: set[str],
) -> State:
    """The state after a session that saw ``table``.

    ``settled`` are records that held at the start and that nothing changed since concerns: they move to this snapshot
    unless another session has written them meanwhile.
    """
    name = snapshot_id(table)
    tests = {test: record for test, record in state.tests.items() if test not in dropped}
    for test, record in settled.items():
        if tests.get(test) == record:
            tests[test] = Record(Outcome.PASSED, name)
    tests.update({test: Record(outcome, name) for test, outcome in outcomes.items()})
    return State(_VERSION, environment_id(), {**state.snapshots, name: table}, tests)
