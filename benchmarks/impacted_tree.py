"""Selection on a real tree: completeness against an independent walk over ruff's import graph, and its speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def tree(path: Path, work: Path) -> None:
    """For every source file of a real tree: selection against an independent walk over ruff's import graph."""
    from proveout.pytest_plugin.impacted.analysis import analyse, forget
    from proveout.pytest_plugin.impacted.selection import impact_of
    from proveout.pytest_plugin.impacted.tree import find_root

    forget(find_root(path)[0])
    load = os.getloadavg()[0]
    first, first_cpu = _seconds(lambda: analyse(path))
    cached, cached_cpu = min(_seconds(lambda: analyse(path)) for _ in range(5))
    analysis = analyse(path)
    tests = {test for test in analysis.graph.tests if test in analysis.table}
    sources = [name for name in analysis.table if name.endswith(".py") and name not in tests]
    imports = _ruff_graph(path)
    ruff, _ = _seconds(lambda: _ruff_graph(path))
    reach = _reach(imports, tests)
    missing, slowest, shares, independent = [], 0.0, [], []
    for name in sources:
        start = time.process_time()
        found = set(impact_of(analysis, {name: "modified"}).files)
        slowest = max(slowest, time.process_time() - start)
        expected = reach.get(name, set()) & tests
        missing += [(name, test) for test in sorted(expected - found)]
        shares.append(len(found) / len(tests))
        independent.append(len(expected) / len(tests))
    command, command_cpu = _command_seconds(path, sources[len(sources) // 2])
    result = {
        "files": len(analysis.table), "python": len([n for n in analysis.table if n.endswith(".py")]),
        "sources": len(sources), "tests": len(tests), "load": load,
        "first": first,
        "first_cpu": first_cpu, "cached": cached, "cached_cpu": cached_cpu,
        "slowest": slowest,
        "missing": missing, "share": sum(shares) / len(shares), "imports": sum(independent) / len(independent),
        "namespace": sum("/__init__" not in n and not (path / n).with_name("__init__.py").exists() for n in sources),
        "ruff": ruff, "command": command,
        "command_cpu": command_cpu,
    }  # fmt: skip
    (work / "tree.json").write_text(json.dumps(result))
    print({key: value if key != "missing" else value[:5] for key, value in result.items()})


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds, and seconds of processor time of this process and of those that it started."""
    wall, cpu = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(cpu[:4])


def _command_seconds(path: Path, edited: str) -> tuple[float, float]:
    """Seconds of ``proveout impacted --base HEAD`` as a process, each time after an edit: the least of five."""
    full = path / edited
    original = full.read_bytes()
    command = [sys.executable, "-m", "proveout", "impacted", "--base", "HEAD", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    seconds = []
    try:
        for turn in range(5):
            full.write_bytes(original + b"\n# edit %d\n" % turn)
            seconds.append(
                _seconds(
                    lambda: subprocess.run(
                        command, cwd=path, env=environment, check=True, capture_output=True
                    )
                )
            )
    finally:
        full.write_bytes(original)
    return min(seconds)


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
