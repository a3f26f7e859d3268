"""Writes the pages that are made from the program's own tables.

python docs/generate.py            write them
python docs/generate.py --check    exit 1 where one is not current
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

os.environ["PROVEOUT_RULES"] = os.devnull

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py; change the tables of the program, then run it again. -->"


def rules() -> Iterator[str]:
    """Every triage rule, by family."""
    from proveout.triage.catalog import RULES_DIR, parse_rules

    yield "# Triage rules"
    yield ""
    yield (
        "What `proveout triage` knows. A rule matches one line of a log; causes name the boundary at fault, "
        "wrappers and aftermath point away from themselves, noise is left out. `proveout triage --why LINE` says "
        "which rules know a line, and `--label` adds rules of your own."
    )
    total = 0
    for file in sorted(RULES_DIR.glob("*.yaml")):
        family = parse_rules(file.read_text(encoding="utf-8"), file.name)
        total += len(family)
        yield f"\n## {file.stem.replace('_', ' ').capitalize()}\n"
        yield "| Rule | Says | Printed by | What it means | What to do |"
        yield "|---|---|---|---|---|"
        for rule in family:
            says = f"{rule.boundary.value} ({rule.subkind})" if rule.role == "cause" else rule.role
            cells = (f"`{rule.id}`", says, *map(cell, (rule.source, rule.explanation, rule.remedy)))
            yield "| " + " | ".join(cells) + " |"
    yield f"\n{total} rules."


def levels() -> Iterator[str]:
    """Every level and variant of every loop."""
    from proveout import loops
    from proveout.loops.bench.table import table as bench
    from proveout.loops.nemo_rl.variants import table as nemo_rl
    from proveout.loops.trl.table import table as trl
    from proveout.loops.verl.variants import table as verl

    yield "# Levels of each loop"
    yield ""
    yield (
        "What a level runs, and the claim that a pass may make: the report says no more than that. A level "
        "without a named variant runs those marked *core*. Minutes are expectations on one node, not measurements."
    )
    sources = {
        "bench": bench().steps,
        "nemo-rl": nemo_rl().variants,
        "verl": verl().variants,
        "trl": trl().steps,
    }
    tables = {
        name: [
            (one.level, one.name, one.core, one.title, one.claim, one.minutes) for one in rows if one.claim
        ]
        for name, rows in sources.items()
    }
    megatron = [row for row in bench("megatron").steps if row not in bench().steps and not row.skip]
    tables["bench"] += [
        (one.level, f"{one.name}` of backend `megatron", one.core, one.title, one.claim, one.minutes)
        for one in megatron
    ]
    for name in loops.LOOPS:
        titles = loops.get(name).levels
        yield f"\n## {name}\n"
        for number, rows in groupby(
            sorted(tables.get(name, []), key=lambda row: row[0]), key=lambda row: row[0]
        ):
            yield f"\n### {name} level {number}: {titles[number]}\n"
            yield "| Variant | Runs | A pass may claim | Minutes |"
            yield "|---|---|---|---|"
            for _, variant, core, title, claim, minutes in rows:
                mark = ", *core*" if core else ""
                yield f"| `{variant}`{mark} | {cell(title)} | {cell(claim)} | {minutes:g} |"


def benchmarks() -> Iterator[str]:
    """The list of measured parts."""
    yield "# Benchmarks"
    yield ""
    yield (
        "Speed is measured, not tested: the programs under `benchmarks/` hold a part against a named peer in the "
        "same run. What was measured, how, and on what:"
    )
    yield ""
    for file in sorted((HERE / "benchmarks").glob("*.md")):
        title = file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        yield f"- [{title}](benchmarks/{file.name})"


def cell(text: str) -> str:
    """Text that a Markdown table shows as it is."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|{}":
        flat = flat.replace(sign, f"&#{ord(sign)};")
    return flat


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "rules.md": rules,
    "levels.md": levels,
    "benchmarks.md": benchmarks,
}


def page(name: str) -> str:
    """The text of one page."""
    title, *rest = PAGES[name]()
    return "\n".join([title, "", NOTE, *rest]) + "\n"


def main(words: list[str]) -> int:
    stale = [
        name
        for name in PAGES
        if not (HERE / name).exists() or (HERE / name).read_text(encoding="utf-8") != page(name)
    ]
    if words == ["--check"]:
        for name in stale:
            print(f"docs/{name} is not current: run python docs/generate.py", file=sys.stderr)
        return bool(stale)
    for name in stale:
        (HERE / name).write_text(page(name), encoding="utf-8")
        print(f"written: docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
