"""Selection on a real tree: completeness against an independent walk over ruff's import graph, and its speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def tree(path: Path, work: Path) -> None:
    """For every source file of a real tree: selection against an independent walk over ruff's import graph."""
    from proveout.pytest_plugin.impacted.analysis import analyse
    from proveout.pytest_plugin.impacted.selection import impact_of

    start = time.perf_counter()
    analyse(path)
    first = time.perf_counter() - start
    start = time.perf_counter()
    analysis = analyse(path)
    cached = time.perf_counter() - start
    tests = {test for test in analysis.graph.tests if test in analysis.table}
    sources = [name for name in analysis.table if name.endswith(".py") and name not in tests]
    start = time.perf_counter()
    imports = _ruff_graph(path)
    ruff = time.perf_counter() - start
    reach = _reach(imports, tests)
    missing, slowest, shares, independent = [], 0.0, [], []
    for name in sources:
        start = time.perf_counter()
        found = set(impact_of(analysis, {name: "modified"}).files)
        slowest = max(slowest, time.perf_counter() - start)
        expected = reach.get(name, set()) & tests
        missing += [(name, test) for test in sorted(expected - found)]
        shares.append(len(found) / len(tests))
        independent.append(len(expected) / len(tests))
    edited = sources[len(sources) // 2]
    result = {
        "files": len(analysis.table), "python": len([n for n in analysis.table if n.endswith(".py")]),
        "sources": len(sources), "tests": len(tests), "first": first, "cached": cached, "slowest": slowest,
        "missing": missing, "share": sum(shares) / len(shares), "imports": sum(independent) / len(independent),
        "namespace": sum("/__init__" not in n and not (path / n).with_name("__init__.py").exists() for n in sources),
        "ruff": ruff, "command": _command_seconds(path, edited),
    }  # fmt: skip
    (work / "tree.json").write_text(json.dumps(result))
    print({key: value if key != "missing" else value[:5] for key, value in result.items()})


def _command_seconds(path: Path, edited: str) -> float:
    """Wall seconds of ``proveout impacted --base HEAD`` as a process, after an edit, median of five."""
    full = path / edited
    original = full.read_bytes()
    seconds = []
    try:
        for turn in range(5):
            full.write_bytes(original + b"\n# edit %d\n" % turn)
            command = [sys.executable, "-m", "proveout", "impacted", "--base", "HEAD", "--json"]
            start = time.perf_counter()
            environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
            subprocess.run(command, cwd=path, env=environment, check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
    finally:
        full.write_bytes(original)
    return sorted(seconds)[2]


def _ruff_graph(path: Path) -> dict[str, list[str]]:
    command = ["ruff", "analyze", "graph", "--isolated", "--quiet", "."]
    done = subprocess.run(command, cwd=path, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def _reach(graph: dict[str, list[str]], tests: set[str]) -> dict[str, set[str]]:
    """Source file to the test modules whose transitive imports reach it."""
    reach: dict[str, set[str]] = {}
    for test in tests:
        seen, pending = {test}, [test]
        while pending:
            name = pending.pop()
            parents = [str(place / "__init__.py") for place in Path(name).parents]
            for other in [*graph.get(name, []), *(one for one in parents if one in graph)]:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        for name in seen:
            reach.setdefault(name, set()).add(test)
    return reach
