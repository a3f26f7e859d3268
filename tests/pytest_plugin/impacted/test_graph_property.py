"""Over random packages: selection never lacks a test whose imports reach the edited file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.pytest_plugin.impacted.analysis import analyse_table
from proveout.pytest_plugin.impacted.selection import impact_of
from proveout.pytest_plugin.impacted.tree import current

NAMES = ["p.a", "p.b", "p.q.c", "p.q.d", "ns.e", "ns.f", "top"]
FORMS = ["import {m}\n", "from {p} import {n}\n", "def f():\n    import {m} as x\n", "from {m} import *\n"]


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found, pending = {start}, [start]
    while pending:
        for other in graph[pending.pop()] - found:
            found.add(other)
            pending.append(other)
    return found


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_imports_that_reach_a_file_are_never_missed(data) -> None:
    nodes = [*NAMES, "tests.test_x", "tests.test_y"]
    graph = {node: set(data.draw(st.lists(st.sampled_from(NAMES), max_size=3))) for node in nodes}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        for package in ("p/__init__.py", "p/q/__init__.py"):
            (root / package).parent.mkdir(parents=True, exist_ok=True)
            (root / package).write_text("")
        for node, targets in graph.items():
            path = root / (node.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = []
            for target in sorted(targets):
                package, _, name = target.rpartition(".")
                forms = FORMS if package else [form for form in FORMS if "{p}" not in form]
                lines.append(data.draw(st.sampled_from(forms)).format(m=target, p=package, n=name))
            path.write_text("".join(lines))
        analysis = analyse_table(root, current(root, in_git=False), in_git=False)
        for node in NAMES:
            found = set(impact_of(analysis, {node.replace(".", "/") + ".py": "modified"}).files)
            expected = {test for test in ("tests.test_x", "tests.test_y") if node in reached(graph, test)}
            assert {name.replace(".", "/") + ".py" for name in expected} == found
