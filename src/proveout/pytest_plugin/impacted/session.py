"""One pytest session seen from selection: what was decided, what was collected, what came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from proveout.pytest_plugin.impacted.analysis import STATE_FILE, Analysis, analyse
from proveout.pytest_plugin.impacted.beyond import beyond_coverage
from proveout.pytest_plugin.impacted.selection import Decision, decide, impact_of
from proveout.pytest_plugin.impacted.state import Outcome, State, load_state, merged, save_state
from proveout.pytest_plugin.impacted.tree import Table, at_base, changed


class Seen(msgspec.Struct):
    """What one process collected; under xdist every worker sends its own."""

    tests: set[str] = set()
    collected: dict[str, bool] = {}
    """Files whose whole collection was seen, and whether it went well."""
    left_out: set[str] = set()
    ignored: set[str] = set()

    def add(self, other: Seen) -> None:
        """Take in what another process saw."""
        self.tests |= other.tests
        self.left_out |= other.left_out
        self.ignored |= other.ignored
        for file, well in other.collected.items():
            self.collected[file] = well and self.collected.get(file, True)


class Brief(msgspec.Struct):
    """What a worker needs: the root, the decision, and the tests that each file is known to hold."""

    root: str
    decision: Decision
    known: dict[str, list[str]] = {}
    beyond: set[str] = set()
    """Test files that coverage cannot judge; filled only for a session that testmon selects as well."""


@dataclass
class Outcomes:
    """Outcomes by test, gathered over the phases of each."""

    by_test: dict[str, Outcome] = field(default_factory=dict)

    def add(self, test: str, when: str, outcome: str, *, expected_failure: bool) -> None:
        """Take in one phase: a failure in any phase stays; a pass needs the call."""
        if self.by_test.get(test) is Outcome.FAILED:
            return
        if outcome == "failed":
            self.by_test[test] = Outcome.FAILED
        elif outcome == "skipped":
            self.by_test[test] = Outcome.PASSED if expected_failure else Outcome.SKIPPED
        elif when == "call" and outcome == "passed":
            self.by_test[test] = Outcome.PASSED


def brief_for(start: Path, base: str | None, *, with_coverage: bool = False) -> tuple[Analysis, Brief]:
    """Analyse the tree that holds ``start`` and decide; ``with_coverage`` when testmon selects as well."""
    analysis = analyse(start)
    state = load_state(analysis.cache_dir / STATE_FILE)
    known: dict[str, list[str]] = {}
    for test in state.tests:
        known.setdefault(test.partition("::")[0], []).append(test)
    brief = Brief(str(analysis.root), decide(analysis, state, base=base), known)
    if with_coverage:
        brief.beyond = _beyond(analysis, state, base)
    return analysis, brief


def _beyond(analysis: Analysis, state: State, base: str | None) -> set[str]:
    tables = [at_base(analysis.root, base)] if base is not None else list(state.snapshots.values())
    if not tables:
        return set(analysis.graph.tests)
    found: set[str] = set()
    for before in tables:
        found |= beyond_coverage(analysis, impact_of(analysis, changed(before, analysis.table)), before)
    return found


def record(cache_dir: Path, table: Table, decision: Decision, seen: Seen, outcomes: Outcomes) -> bool:
    """Save what a session found out; False when the place is read-only."""
    path = cache_dir / STATE_FILE
    state: State = load_state(path)
    results = dict(outcomes.by_test)
    for file, well in seen.collected.items():
        results[file] = Outcome.PASSED if well else Outcome.FAILED
    for test in seen.tests:
        if test not in results and test not in state.tests:
            results[test] = Outcome.UNKNOWN
    whole = {file for file, well in seen.collected.items() if well}
    dropped = {
        test
        for test in state.tests
        if (file := test.partition("::")[0]) not in table
        or (file in whole and test not in seen.tests and test != file)
    }
    settled = {
        test: state.tests[test] for test in decision.settled if test in state.tests and test not in results
    }
    return save_state(path, merged(state, table, results, settled, dropped))
