"""What the plugin adds to a pytest start, and what the tracker costs over 20,000 tests.

Each figure is a difference or a ratio against the same session without the plugin, in the same run,
alternating. Modules are compiled beforehand, as those of an installed package are.

    python benchmarks/pytest_plugin_start.py [--repeat 15] [--tests 20000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

PLUGIN = "proveout.pytest_plugin.plugin"


class Cost(NamedTuple):
    """Seconds of one pytest process: on the clock, and of processor time."""

    wall: float
    cpu: float


def session(root: Path, *arguments: str) -> Cost:
    """The cost of one pytest process."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPYCACHEPREFIX": str(root / "compiled")}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def start_cost(root: Path, repeat: int) -> None:
    """The plugin's share of the start of a session that does not use it."""
    (root / "test_plain.py").write_text("def test_plain(): pass\n")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    session(root), session(root, "-p", PLUGIN)
    without, with_it = [], []
    for _ in range(repeat):
        without.append(session(root))
        with_it.append(session(root, "-p", PLUGIN))
    for what in Cost._fields:
        plain, more = [getattr(c, what) for c in without], [getattr(c, what) for c in with_it]
        added = median(b - a for a, b in zip(plain, more, strict=True))
        print(
            f"start, {what:4}: {median(plain) * 1000:7.1f} ms without, {median(more) * 1000:7.1f} ms with, "
            f"added {added * 1000:5.1f} ms (median of {repeat} pairs)"
        )


def many_tests(root: Path, tests: int, repeat: int) -> None:
    """Sessions of many tests: the tracker against a peer fixture that keeps its metrics in memory only."""
    (root / "test_many.py").write_text(
        "import pytest\n"
        f"@pytest.mark.parametrize('n', range({tests}))\n"
        "def test_many(tracker, n):\n    tracker.track('n', n)\n    tracker.track('loss', n / 7)\n"
    )
    peer = root / "peer"
    peer.mkdir()
    (peer / "conftest.py").write_text(
        "import pytest\nseen = {}\n"
        "class Tracker:\n"
        "    def __init__(self, test): self.test = test\n"
        "    def track(self, name, value): seen.setdefault(self.test, {})[name] = value\n"
        "@pytest.fixture\ndef tracker(request): return Tracker(request.node.nodeid)\n"
    )
    (peer / "test_many.py").write_text((root / "test_many.py").read_text())
    peers, ours = [], []
    for _ in range(repeat):
        peers.append(session(root, "peer/test_many.py"))
        ours.append(session(root, "-p", PLUGIN, "test_many.py"))
    for what in Cost._fields:
        plain, more = [getattr(c, what) for c in peers], [getattr(c, what) for c in ours]
        ratio = median(b / a for a, b in zip(plain, more, strict=True))
        print(
            f"{tests} tests, {what:4}: {median(plain):6.1f} s in memory only, {median(more):6.1f} s tracker, "
            f"ratio {ratio:.2f} (median of {repeat} pairs)"
        )
    results = root / "unit_results.json"
    content = json.loads(results.read_text())
    print(f"results file {results.stat().st_size / 1e6:.1f} MB, {len(content['tests'])} tests in it")
    workers = session(root, "-p", "xdist", "-p", PLUGIN, "-n", "4", "test_many.py")
    without = session(root, "-p", "xdist", "-n", "4", "peer/test_many.py")
    content = json.loads(results.read_text())
    print(
        f"4 xdist workers, cpu: {without.cpu:.1f} s in memory only (and lost), {workers.cpu:.1f} s tracker, "
        f"ratio {workers.cpu / without.cpu:.2f}, {len(content['tests'])} tests kept"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--tests", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=3, help="pairs of sessions with many tests")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        start_cost(Path(directory), arguments.repeat)
    with tempfile.TemporaryDirectory() as directory:
        many_tests(Path(directory), arguments.tests, arguments.pairs)


if __name__ == "__main__":
    main()
