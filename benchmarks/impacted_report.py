"""What the parts of ``benchmarks/impacted.py`` measured, as Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEAD = """# Impacted selection

Made by `benchmarks/impacted.py`. A mutation is one seeded edit of one source file. The truth is what fails when every
test runs under it; a *miss* is such a test that a selector leaves out. A share is the mean, over mutations, of the
tests that the selector would run. A mutation under which the suite hangs is left out. Every selector
was asked about the same mutations and judged by the same truth; pytest-impacted, which builds its graph anew each time,
about every fourth.

| Project | Tests | Selector | Mutations | of them break a test | Misses (in mutations) | Mean share |
|---|---|---|---|---|---|---|
"""
OUTCOME = {True: "runs the test, which fails", False: "leaves it out"}


def report(work: Path, out: Path) -> None:
    """Write the document from the results in ``work``."""
    text = HEAD
    total = 0
    for path in sorted(work.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows = [row for row in rows if not row["hangs"]]
        total += len(rows)
        text += "".join(_row(path.stem, name, rows) for name in [*_selectors(rows), "run all"])
    text += f"\nMutations in all: {total}.\n"
    for name, section in (("actor.json", _actor), ("tree.json", _tree), ("many.json", _many)):
        if (work / name).exists():
            text += section(json.loads((work / name).read_text()))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)


def _selectors(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row["selected"]))


def _row(project: str, name: str, rows: list[dict[str, Any]]) -> str:
    asked = rows if name == "run all" else [row for row in rows if name in row["selected"]]
    shares = [1.0 if name == "run all" else row["selected"][name] / row["tests"] for row in asked]
    missed = [row["missed"][name] for row in asked if row["missed"].get(name)]
    breaking = sum(bool(row["broken"]) for row in asked)
    misses = f"{sum(map(len, missed))} ({len(missed)})"
    share = sum(shares) / len(shares)
    return (
        f"| {project} | {asked[0]['tests']} | {name} | {len(asked)} | {breaking} | {misses} | {share:.1%} |\n"
    )


def _actor(one: dict[str, Any]) -> str:
    rows = {"testmon": "`--testmon` alone", "plain": "`--impacted`", "both": "`--impacted --testmon`"}
    return (
        "\n## An actor (real Ray)\n\nA test reaches a class only inside a Ray actor, which imports it by the name in a"
        " registry. The class is broken.\n\n| Selection | |\n|---|---|\n"
        + "".join(f"| {label} | {OUTCOME[one[f'{name}_finds']]} |\n" for name, label in rows.items())
    )


def _both(one: dict[str, Any], name: str) -> str:
    return f"{one[name]:.3f} s ({one[f'{name}_cpu']:.3f} s)"


def _tree(one: dict[str, Any]) -> str:
    rows = {
        "test modules that imports reach and the selection lacks": len(one["missing"]),
        "mean share selected": f"{one['share']:.1%}",
        "mean share that imports alone reach": f"{one['imports']:.1%}",
        "graph of the whole tree, first time (processor time)": _both(one, "first"),
        "graph of the whole tree, kept: least of 5 (processor time)": _both(one, "cached"),
        "the tests of one changed file, slowest file, processor time": f"{one['slowest']:.3f} s",
        "`proveout impacted --base HEAD --json` after an edit: least of 5 (processor time)": _both(
            one, "command"
        ),
        "`ruff analyze graph` of the same tree, no tests selected": f"{one['ruff']:.2f} s",
    }
    lines = [
        "\n## A real NeMo-RL tree\n",
        f"{one['files']} files, {one['python']} of them Python, {one['tests']} test modules. For each of the",
        f"{one['sources']} other Python files ({one['namespace']} of them in directories without `__init__.py`), the",
        "selection is compared with a walk over `ruff analyze graph` from every test module, with the packages above",
        "each module added.\n\n| | |\n|---|---|",
        *(f"| {label} | {value} |" for label, value in rows.items()),
        f"\nMeasured on a shared machine with two cores while {one['load']:.0f} processes wanted them.\n",
    ]
    return "\n".join(lines)


def _many(one: dict[str, float]) -> str:
    labels = {
        "plain": "every test, without `--impacted`",
        "first": "every test, with `--impacted` and no record yet",
        "nothing": "`--impacted`, nothing changed: no test runs",
        "one file": "`--impacted`, one test file edited: 1,000 tests run",
    }
    rows = "".join(f"| {label} | {one[name]:.1f} s |\n" for name, label in labels.items())
    return f"\n## 20,000 tests in 20 files\n\n| Session | Processor time |\n|---|---|\n{rows}"
