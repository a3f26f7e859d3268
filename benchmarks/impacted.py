"""How safe and how narrow impacted selection is, beside pytest-testmon, pytest-impacted and running everything.

A *mutation* is one seeded edit of one source file. The truth is what fails when every test runs under it. Each
selector is asked which tests it would run; a failing test that is not among them is a miss.

    python benchmarks/impacted.py mutate --work DIR --project toolz=PATH:TESTS ... --count 70 [--peer]
    python benchmarks/impacted.py tree PATH --work DIR
    python benchmarks/impacted.py actor --work DIR --python PYTHON
    python benchmarks/impacted.py many --work DIR
    python benchmarks/impacted.py report --work DIR --out docs/benchmarks/impacted.md

Results of finished mutations are kept in DIR and not run again. ``mutate`` needs an environment of its own with
pytest, pytest-testmon, pytest-impacted (for ``--peer``) and what the tests need; PYTHON has ray, pytest and
pytest-testmon.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from impacted_actor import actor
from impacted_many import many
from impacted_report import report
from impacted_tree import tree

SOURCE = Path(__file__).resolve().parent.parent / "src"
QUIET = ["-q", "--tb=no", "--color=no", "--import-mode=importlib"]
NO_OPTIONS = ["-o", "addopts="]
SELECT = ["--collect-only", "-o", "addopts="]
LIMIT = 60
PEER_EVERY = 4
"""pytest-impacted builds its graph anew for each call, which takes longer than the tests: ask it for every fourth."""
OWN_AND_TESTMON = ["proveout", "testmon", "proveout and testmon"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE,
    ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def pytest_run(root: Path, arguments: list[str], plugins: list[str], limit: float = LIMIT) -> str:
    """Output of one pytest session in ``root``, in a fork of this process so that pytest is imported once only."""
    loaded = [word for plugin in plugins for word in ("-p", plugin)]
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _session(root, [*QUIET, *loaded, *arguments], output.fileno())
        end = time.monotonic() + limit
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "HANGS"
            time.sleep(0.02)
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def _session(root: Path, arguments: list[str], output: int) -> None:
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(root)
    paths = [str(root), str(root / "src"), str(SOURCE)]
    sys.path[:0] = paths
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    status = 99
    try:
        import pytest

        status = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def preload() -> None:
    """Import what every session needs, and nothing of the projects under test or of proveout."""
    for name in ("pytest", "_pytest.junitxml", "coverage", "testmon.pytest_testmon", "msgspec", "hypothesis"):
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("pytest_impacted.plugin")


def listed(output: str) -> set[str]:
    """Node ids of a quiet collection."""
    return {
        line for line in output.splitlines() if ".py::" in line and not line.startswith(("ERROR", "FAILED"))
    }


def mutated(source: str, rng: random.Random) -> str | None:
    """The source with one operator, constant, condition or statement changed; None when it holds nothing to change."""
    tree = ast.parse(source)
    places = [node for node in ast.walk(tree) if _mutable(node)]
    if not places:
        return None
    node = rng.choice(places)
    lines = source.splitlines(keepends=True)
    before = "".join(lines[: node.lineno - 1]) + lines[node.lineno - 1].encode()[: node.col_offset].decode()
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode() + "".join(
        lines[node.end_lineno :]
    )
    text = _changed(node)
    return before + text + after


def _mutable(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int | float) and hasattr(node, "lineno")
    if isinstance(node, ast.BinOp):
        return type(node.op) in SWAPS
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPS
    return isinstance(node, ast.BoolOp | ast.Return | ast.Raise | ast.AugAssign) and hasattr(node, "lineno")


def _changed(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return str(not node.value) if isinstance(node.value, bool) else f"({node.value!r} + 1)"
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Return):
        return "return None" if node.value is not None else "return 1"
    else:
        return "pass"
    return f"({ast.unparse(node)})"


class Bench:
    """One project: a clean git copy, its baseline, and mutations judged one after another."""

    def __init__(
        self,
        work: Path,
        name: str,
        origin: Path,
        tests: list[str],
        peer: str,
        module: str,
        sources: list[str],
    ) -> None:
        self.name, self.tests, self.peer, self.module, self.sources = name, tests, peer, module, sources
        self.root = work / name / "tree"
        self.results = work / f"{name}.jsonl"
        self.database = work / name / "testmondata"
        if not self.database.exists():
            self._prepare(origin)
        everything = pytest_run(self.root, [*SELECT, *tests], ["pytester"])
        self.all = listed(everything)
        clean = pytest_run(self.root, ["-rfE", *NO_OPTIONS, *tests], [])
        self.already = set(FAILED.findall(clean))

    def _prepare(self, origin: Path) -> None:
        shutil.rmtree(self.root.parent, ignore_errors=True)
        skip = shutil.ignore_patterns(".git", "__pycache__", ".proveout", ".testmondata*", ".pytest_cache")
        shutil.copytree(origin, self.root, ignore=skip, symlinks=True)
        (self.root / ".gitignore").write_text(
            "__pycache__/\n.testmondata*\n.proveout/\n.hypothesis/\n.pytest_cache/\n*.pyc\n"
        )
        for command in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "base"]):
            who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
            subprocess.run(["git", *who, *command], cwd=self.root, check=True)
        baseline = ["--testmon", *NO_OPTIONS, *self.tests]
        pytest_run(self.root, baseline, ["testmon.pytest_testmon"], limit=3600)
        pytest_run(self.root, [*SELECT, "--impacted", "--base", "HEAD", *self.tests], [HOOKS])
        shutil.copy(self.root / ".testmondata", self.database)

    def run(self, count: int, seed: int) -> None:
        """Judge ``count`` mutations; those of an earlier call with the same seed are kept."""
        done = {json.loads(line)["number"] for line in _lines(self.results)}
        for number in range(count):
            if number not in done:
                result = self._one(number, random.Random(f"{self.name}-{seed}-{number}"))
                with self.results.open("a") as stream:
                    stream.write(json.dumps(result) + "\n")
                print(
                    self.name, number, result["file"], len(result["broken"]), result["selected"], flush=True
                )

    def _sources(self) -> list[str]:
        tracked = subprocess.run(
            ["git", "ls-files", "*.py"], cwd=self.root, capture_output=True, text=True, check=True
        )
        inside = tuple(f"{source}/" for source in self.sources)
        names = [name for name in tracked.stdout.split() if name.startswith(inside) and "test" not in name]
        return sorted(name for name in names if (self.root / name).stat().st_size > 200)

    def _one(self, number: int, rng: random.Random) -> dict[str, object]:
        file, original, changed = self._mutation(rng)
        path = self.root / file
        try:
            path.write_text(changed)
            output = pytest_run(self.root, ["-rfE", *NO_OPTIONS, *self.tests], [])
            broken = sorted(set(FAILED.findall(output)) - self.already)
            ask = None if number % PEER_EVERY == 0 else OWN_AND_TESTMON
            chosen = {} if output == "HANGS" else self._selections(ask)
        finally:
            path.write_text(original)
        missed = {
            name: [test for test in broken if not _runs(test, picked)] for name, picked in chosen.items()
        }
        return {
            "number": number, "file": file, "broken": broken, "hangs": output == "HANGS", "tests": len(self.all),
            "selected": {name: len(picked & self.all) for name, picked in chosen.items()},
            "missed": {name: tests for name, tests in missed.items() if tests},
        }  # fmt: skip

    def again(self, names: list[str], count: int, seed: int) -> None:
        """Ask the named selectors once more about the first ``count`` mutations; what fails under each is kept."""
        rows = [json.loads(line) for line in _lines(self.results)]
        for row in rows:
            if row["hangs"] or row["number"] >= count:
                continue
            file, original, changed = self._mutation(random.Random(f"{self.name}-{seed}-{row['number']}"))
            assert file == row["file"], (file, row["file"])
            try:
                (self.root / file).write_text(changed)
                for name, picked in self._selections(names).items():
                    row["selected"][name] = len(picked & self.all)
                    row["missed"][name] = [test for test in row["broken"] if not _runs(test, picked)]
            finally:
                (self.root / file).write_text(original)
        self.results.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def _mutation(self, rng: random.Random) -> tuple[str, str, str]:
        while True:
            file = rng.choice(self._sources())
            original = (self.root / file).read_text()
            changed = mutated(original, rng)
            if changed is not None and changed != original:
                return file, original, changed

    def _selections(self, only: list[str] | None = None) -> dict[str, set[str]]:
        base = ["--impacted", "--base", "HEAD"]
        testmon = ["--testmon-nocollect"]
        calls = {
            "proveout": (base, [HOOKS]),
            "testmon": (testmon, ["testmon.pytest_testmon"]),
            "proveout and testmon": ([*base, *testmon], ["testmon.pytest_testmon", HOOKS]),
        }
        if self.peer:
            options = ["--impacted", f"--impacted-module={self.module}", "--impacted-git-mode=unstaged"]
            options += [f"--impacted-tests-dir={self.tests[0]}"]
            calls["pytest-impacted"] = (options, ["pytest_impacted.plugin"])
        found = {}
        for name, (options, plugins) in calls.items():
            if only and name not in only:
                continue
            shutil.copy(self.database, self.root / ".testmondata")
            output = pytest_run(self.root, [*SELECT, *options, *self.tests], plugins)
            broken_files = {line.split()[1] for line in output.splitlines() if line.startswith("ERROR ")}
            found[name] = listed(output) | broken_files
        return found


HOOKS = "proveout.pytest_plugin.impacted.hooks"


def _runs(test: str, picked: set[str]) -> bool:
    """Whether a broken test, or file that could not be collected, is among what a selector picked."""
    file = test.partition("::")[0]
    if "::" not in test or file in picked:
        return any(one == file or one.startswith(file + "::") for one in picked)
    return test in picked or any(one.startswith(test) for one in picked)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    """Parse and run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    mutate = parts.add_parser("mutate")
    mutate.add_argument("--project", required=True, help="NAME=PATH:TESTS[,TESTS]:MODULE[:SOURCES[,SOURCES]]")
    mutate.add_argument("--count", type=int, default=70)
    mutate.add_argument("--seed", type=int, default=1)
    mutate.add_argument(
        "--peer", action="store_true", help="also ask pytest-impacted, which is installed here"
    )
    mutate.add_argument(
        "--again", default="", help="selectors, by name, to ask again about finished mutations"
    )
    real = parts.add_parser("tree")
    real.add_argument("path", type=Path)
    remote = parts.add_parser("actor")
    remote.add_argument("--python", required=True)
    numerous = parts.add_parser("many")
    text = parts.add_parser("report")
    text.add_argument("--out", type=Path, required=True)
    for one in (mutate, real, remote, numerous, text):
        one.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    work = options.work.resolve()
    if options.part == "mutate":
        name, _, rest = options.project.partition("=")
        path, tests, module, *narrow = rest.split(":")
        sources = (narrow[0] if narrow else module.replace(".", "/")).split(",")
        preload()
        bench = Bench(work, name, Path(path), tests.split(","), options.peer, module, sources)
        if options.again:
            bench.again(options.again.split(","), options.count, options.seed)
        else:
            bench.run(options.count, options.seed)
    elif options.part == "tree":
        tree(options.path.resolve(), work)
    elif options.part == "actor":
        actor(work, options.python)
    elif options.part == "many":
        many(work)
    else:
        report(work, options.out)


if __name__ == "__main__":
    main()
