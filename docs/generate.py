"""Writes the pages that are made from the program's own tables.

python docs/generate.py            write them
python docs/generate.py --check    exit 1 where one is not current
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

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


def faults() -> Iterator[str]:
    """The fault catalogue, with what was measured on it."""
    import json

    from proveout.loops.bench.faults import catalogue

    measured = json.loads((HERE / "faults.json").read_text(encoding="utf-8"))
    known = {row["fault"]: row for row in measured["faults"]}
    clean = measured["clean"]
    yield "# Faults"
    yield ""
    yield (
        "Would proveout catch it? `proveout faults run` puts each of these faults into a real run of the bench loop, "
        "in a process of its own, and judges it as any other run. `proveout faults list` prints the catalogue; "
        "`--only` takes ids and groups. The last column says whether the matching functional test of NeMo-RL would "
        "have failed: its command's exit status and its own metric expressions, with their semantics (`max` passes "
        "over NaN)."
    )
    yield ""
    yield (
        f"Measured with backend {measured['backend']}: {measured['caught']} of {measured['visible']} visible faults "
        f"caught, {measured['right_boundary']} with the expected boundary; the functional tests' own checks catch "
        f"{measured['functional_checks_catch']}. False alarms: {clean['alarms']} of {clean['runs']} sound runs (one "
        "seed each, in turn over all steps of all levels and the settings that faults need besides) raised a finding "
        "above notice."
    )
    yield from _fault_tables(catalogue(), known)
    other = HERE / "faults-megatron.json"
    if other.exists():
        yield from _on_megatron(json.loads(other.read_text(encoding="utf-8")))


def _on_megatron(measured: dict[str, Any]) -> Iterator[str]:
    from proveout.loops.bench.faults import catalogue

    yield "\n# The same faults with backend megatron\n"
    yield (
        "The policy is a Megatron model that the Bridge imported. Faults of a mapping spoil the checkpoint that it "
        "imports, those of configuration the provider. Measured: "
        f"{measured['caught']} of {measured['visible']} visible faults caught, {measured['right_boundary']} with the "
        f"expected boundary; the functional tests' own checks catch {measured['functional_checks_catch']}. "
        f"False alarms: {measured['clean']['alarms']} of {measured['clean']['runs']} sound runs."
    )
    known = {row["fault"]: row for row in measured["faults"]}
    yield from _fault_tables([fault.with_backend("megatron") for fault in catalogue()], known)


def _fault_tables(faults: Iterable[Any], known: dict[str, Any]) -> Iterator[str]:
    faults = list(faults)
    order = {fault.group: number for number, fault in reversed(list(enumerate(faults)))}
    rows = sorted(faults, key=lambda fault: order[fault.group])
    for group, found in groupby(rows, key=lambda fault: fault.group):
        yield f"\n## {group.capitalize()}\n"
        yield "| Fault | What is wrong | Source | Level | Verdict | Boundary | Found by, at step | Functional checks |"
        yield "|---|---|---|---|---|---|---|---|"
        for fault in found:
            row = known.get(fault.id, {})
            step = row.get("step")
            by = cell(row.get("finding", "").removeprefix("judge.")) + (
                f", {step}" if step is not None else ""
            )
            caught = row.get("verdict", "not run")
            absent = f"not for this backend: {fault.not_for}" if fault.not_for else ""
            cells = (
                f"`{fault.id}`",
                cell(fault.what),
                cell(fault.source),
                f"{fault.level} {fault.step}",
                caught,
                row.get("boundary") or "",
                by or cell(absent or (fault.invisible and f"not visible: {fault.invisible}")),
                ""
                if fault.not_for
                else {True: "fail", False: "pass"}.get(row.get("functional_checks_catch"), ""),
            )
            yield "| " + " | ".join(cells) + " |"


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
    "faults.md": faults,
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
