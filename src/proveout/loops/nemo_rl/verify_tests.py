"""Is a test command true in this checkout? Files exist, something is selected, its extras go together."""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import combinations
from pathlib import Path

from proveout.domain.finding import Finding
from proveout.domain.step import Step
from proveout.domain.tree import Tree
from proveout.loops.findings import finding
from proveout.loops.nemo_rl.marks import EXCLUSIVE, read_marks, selected
from proveout.loops.nemo_rl.runs import CommandRead


def nearest_remedy(tree: Tree, path: str) -> str:
    """A remedy that names the nearest file, or ''."""
    near = tree.nearest(path, [f"{Path(path).parent}/*{Path(path).suffix}"])
    return f"the nearest is {near}" if near else ""


def selection(step: Step, words: tuple[str, ...], tree: Tree) -> list[Finding]:
    """Test files that are missing, and a selection that runs nothing."""
    paths = [word for word in words if word.startswith("tests/")]
    missing = [path for path in paths if not tree.exists(path)]
    found = [
        finding(
            "missing.test",
            step.id,
            f"{path} does not exist in this checkout",
            file=path,
            remedy=nearest_remedy(tree, path),
        )
        for path in missing
    ]
    only = next((mark for mark in EXCLUSIVE if f"--{mark.replace('_', '-')}-only" in words), "")
    files = [
        read_marks(tree, file)
        for path in paths
        if path not in missing
        for file in ([path] if path.endswith(".py") else tree.glob(f"{path}/**/test_*.py"))
    ]
    gated = "--hf-gated" in words
    if files and "-m" not in words and not any(selected(file, only, gated) for file in files):
        marks = sorted({mark for file in files for test in file.tests for mark in test})
        number = sum(len(file.tests) for file in files)
        why = (
            f"carry {', '.join(marks)}"
            if marks and not only
            else f"are not among those that --{only}-only runs"
        )
        found.append(
            finding(
                "tests.deselected",
                step.id,
                f"all {number} tests {why}, so none would run and pytest would exit 5",
                file=files[0].path,
                remedy="uv run --extra mcore --group test pytest FILES --mcore-only [--hf-gated]"
                if "mcore" in marks
                else "",
            )
        )
    return found


def extras(step: Step, read: CommandRead, tree: Tree) -> list[Finding]:
    """Extras of one command that the checkout declares as conflicting."""
    if len(read.extras) < 2 or not tree.exists("pyproject.toml"):
        return []
    clashes = _conflicts(tree.text("pyproject.toml"))
    return [
        finding(
            "extras",
            step.id,
            f"extras {a} and {b} conflict in pyproject.toml",
            file="pyproject.toml",
            remedy="run what needs them in separate steps",
        )
        for a, b in combinations(sorted(set(read.extras)), 2)
        if frozenset((a, b)) in clashes
    ]


@cache
def _conflicts(text: str) -> frozenset[frozenset[str]]:
    try:
        project = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return frozenset()
    name = project.get("project", {}).get("name")
    groups = project.get("tool", {}).get("uv", {}).get("conflicts", [])
    return frozenset(
        frozenset(item["extra"] for item in group)
        for group in groups
        if all("extra" in item and item.get("package", name) == name for item in group)
    )
