"""Which tests a change can reach, and which may be left out because they passed and nothing that they reach changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from proveout.pytest_plugin.impacted.analysis import Analysis, with_gone
from proveout.pytest_plugin.impacted.config_files import affects_everything, affects_nothing
from proveout.pytest_plugin.impacted.index import ancestors, parent
from proveout.pytest_plugin.impacted.state import Outcome, Record, State, environment_id
from proveout.pytest_plugin.impacted.tree import SUBMODULE, Table, at_base, changed


class Because(msgspec.Struct, frozen=True):
    """Why a test runs: a sentence, the changed file if there is one, and the chain from the test to it."""

    reason: str
    changed: str = ""
    chain: tuple[str, ...] = ()


class Impact(msgspec.Struct):
    """What one set of changes reaches."""

    changes: dict[str, str] = {}
    """Changed path to ``added``, ``modified`` or ``deleted``."""
    everything: str = ""
    """Why every test runs, or an empty string."""
    files: dict[str, Because] = {}
    """Impacted test files."""


class Decision(msgspec.Struct):
    """What runs and what does not; plain data, so that it can be handed to other processes."""

    impact: Impact
    again: dict[str, str] = {}
    """Tests that run whatever changed, and why: they failed, were skipped, or are not known to have passed."""
    settled: set[str] = set()
    """Tests (and collections of files) that passed and that nothing changed since reaches."""
    tests: set[str] = set()
    """Files that the analysis knows as tests; others always run."""
    trusts_base: bool = False
    """Whether a test without a record is taken to pass at the base."""
    chains: dict[str, Because] = {}
    """Test files that changes since any earlier run reach; for display, each test is judged by its own snapshot."""

    def reason(self, test: str) -> str:
        """Why a test runs, or an empty string when it need not; ``test`` is a record's name (see ``State``)."""
        file = test.partition("::")[0]
        if self.impact.everything:
            return self.impact.everything
        if file not in self.tests:
            return "its file is not known to hold tests"
        if file in self.impact.files:
            return self.impact.files[file].reason
        if test in self.again:
            return self.again[test]
        if self.trusts_base or test in self.settled:
            return ""
        return "it has no record of a pass"

    def skips_file(self, file: str, known: Iterable[str]) -> bool:
        """Whether a test file need not even be imported, given the tests that it is known to hold."""
        return not self.reason(file) and not any(self.reason(test) for test in known)


def impact_of(analysis: Analysis, changes: Mapping[str, str]) -> Impact:
    """Test files that the changes reach, each with the shortest chain; the rules for files that nothing names."""
    impact = Impact(dict(changes))
    if not changes:
        return impact
    analysis = with_gone(analysis, (path for path, how in changes.items() if how == "deleted"))
    seeds: dict[str, str] = {}
    for path in sorted(changes):
        everything = _everything(analysis, path)
        if everything:
            impact.everything = everything
        seeds.update(_seeds(analysis, path))
    graph = analysis.graph
    toward = graph.reached_from(seeds)
    for test in sorted(graph.tests & toward.keys()):
        if test in analysis.table:
            steps = graph.chain(test, toward)
            end = steps[-1].target if steps else test
            start = seeds[end]
            chain = [f"{step.source} {step.kind.value} {step.target}" for step in steps]
            if start != end:
                chain.append(f"{end} lies beside {start}")
            via = f" through {steps[0].target}" if len(steps) > 1 else ""
            impact.files[test] = Because(f"{start} was {changes[start]}{via}", start, tuple(chain))
    return impact


def _everything(analysis: Analysis, path: str) -> str:
    if not parent(path) and affects_everything(path):
        return f"{path} configures every test"
    if analysis.table.get(path, "").startswith(SUBMODULE):
        return f"submodule {path} changed"
    linked = [link for link, target in analysis.links.items() if path.startswith(target + "/")]
    if linked:
        return f"{path} can also be reached through the link {linked[0]}"
    if _unnamed(analysis, path) and not _nearest_code(analysis, path):
        return f"nothing says who reads {path}"
    return ""


def _unnamed(analysis: Analysis, path: str) -> bool:
    code = path.endswith(".py") or path in analysis.graph.tests
    return not (code or affects_everything(path) or affects_nothing(path) or analysis.graph.named(path))


def _nearest_code(analysis: Analysis, path: str) -> str:
    """The nearest directory above a file, other than the root, that holds Python files."""
    holders = {parent(other) for other in analysis.nodes if other.endswith(".py")}
    return next((place for place in ancestors(path) if place and place in holders), "")


def _seeds(analysis: Analysis, path: str) -> dict[str, str]:
    """Files to walk back from, each with the changed file that it stands for."""
    seeds = {path: path}
    place = ""
    if affects_everything(path):
        place = parent(path)
    elif _unnamed(analysis, path):
        place = _nearest_code(analysis, path)
    if place:
        below = place + "/"
        seeds.update({other: path for other in analysis.table if other.startswith(below)})
    return seeds


def decide(analysis: Analysis, state: State, *, base: str | None = None) -> Decision:
    """What to run: against the commit ``base``, or against what each test saw when it last passed.

    Raises UsageError when ``base`` is no commit of this repository.
    """
    settled, again, impacts = _judged(analysis, state)
    tests = set(analysis.graph.tests)
    if base is not None:
        impact = impact_of(analysis, changed(at_base(analysis.root, base), analysis.table))
        failing = {test: why for test, why in again.items() if state.tests[test].outcome is Outcome.FAILED}
        return Decision(impact, failing, settled, tests, trusts_base=True)
    if not state.tests:
        return Decision(Impact(everything="no test has a record yet"))
    if state.environment != environment_id():
        return Decision(Impact(everything="the interpreter or an installed package is another one"))
    changes = {path: how for impact in impacts for path, how in impact.changes.items()}
    chains = {file: because for impact in impacts for file, because in impact.files.items()}
    return Decision(Impact(changes), again, settled, tests, chains=chains)


def _judged(analysis: Analysis, state: State) -> tuple[set[str], dict[str, str], list[Impact]]:
    by_snapshot: dict[str, list[tuple[str, Record]]] = {}
    for test, record in state.tests.items():
        by_snapshot.setdefault(record.snapshot, []).append((test, record))
    settled: set[str] = set()
    again: dict[str, str] = {}
    impacts = []
    same_environment = state.environment == environment_id()
    for snapshot, records in by_snapshot.items():
        before: Table | None = state.snapshots.get(snapshot)
        if before is None:
            impact = Impact(everything="the tree that it saw is not known any more")
        else:
            impact = impact_of(analysis, changed(before, analysis.table))
        impacts.append(impact)
        for test, record in records:
            file = test.partition("::")[0]
            if record.outcome is not Outcome.PASSED:
                again[test] = _WHY[record.outcome]
            elif impact.everything:
                again[test] = impact.everything
            elif file in impact.files:
                again[test] = impact.files[file].reason
            elif same_environment and file in analysis.table:
                settled.add(test)
    return settled, again, impacts


_WHY = {
    Outcome.FAILED: "it failed when it last ran",
    Outcome.SKIPPED: "it was skipped, which proves nothing",
    Outcome.UNKNOWN: "it has not run yet",
}
