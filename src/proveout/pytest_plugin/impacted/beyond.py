"""Tests that in-process coverage cannot judge, so that a coverage-based selector must not leave them out.

Coverage of a test sees the lines that ran in the test's own process and while it ran. It misses other processes
(Ray actors, subprocesses), files that are no Python, code that ran at import, and files that are new or gone.
"""

from __future__ import annotations

from proveout.pytest_plugin.impacted.analysis import Analysis
from proveout.pytest_plugin.impacted.edges import Kind
from proveout.pytest_plugin.impacted.facts import Flag
from proveout.pytest_plugin.impacted.selection import Impact, impact_of
from proveout.pytest_plugin.impacted.tree import Table

_IN_PROCESS = {Kind.IMPORT, Kind.PACKAGE, Kind.CONFTEST, Kind.SESSION}


def beyond_coverage(analysis: Analysis, impact: Impact, before: Table) -> set[str]:
    """Impacted test files that coverage cannot judge; ``before`` is the tree that the changes start from."""
    if impact.everything:
        return set(analysis.graph.tests)
    at_import = _run_at_import(analysis)
    opaque = {
        path: how
        for path, how in impact.changes.items()
        if path in at_import or not _bodies_only(analysis, path, how, before)
    }
    found = set(impact_of(analysis, opaque).files) if opaque else set()
    visible = set(impact.changes) - set(opaque)
    for test in set(impact.files) - found:
        if _leaves_the_process(analysis, test) or not visible & analysis.graph.closure(
            test, _IN_PROCESS.__contains__
        ):
            found.add(test)
    return found


def _run_at_import(analysis: Analysis) -> set[str]:
    """Files whose functions may run while some file is imported, or once for several tests."""
    starts = {file for node in analysis.nodes.values() for file in node.runs}
    return analysis.graph.closure_of(starts, _IN_PROCESS.__contains__)


def _leaves_the_process(analysis: Analysis, test: str) -> bool:
    return any(Flag.SPAWNS in analysis.flags(node) for node in analysis.graph.closure(test))


def _bodies_only(analysis: Analysis, path: str, how: str, before: Table) -> bool:
    """Whether a Python file differs from its earlier content in the bodies of functions alone."""
    node = analysis.nodes.get(path)
    if how != "modified" or not path.endswith(".py") or node is None or not node.skeleton:
        return False
    earlier = analysis.earlier(path, before.get(path, ""))
    return earlier is not None and earlier.skeleton == node.skeleton
