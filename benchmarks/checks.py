"""200 metric checks over 1,000 tags: proveout's evaluator against eval() and against simpleeval, in the same run.

    python benchmarks/checks.py > docs/benchmarks/judge.md

``eval()`` is what NeMo-RL's check_metrics.py does: the left side once for its value, the whole once for the
verdict, with helpers over {step: value}. ``simpleeval`` (pip install simpleeval) is the safe evaluator that is most
used; it gets the same helpers. Each of the three answers the same checks; the answers are compared first. The
rounds alternate; the median of the processor time counts, the wall time is shown beside it.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from proveout.domain.metrics import MetricTable, Series
from proveout.judge.expressions import Data, check_all

TAGS, STEPS, CHECKS, ROUNDS = 1000, 100, 200, 15
Metrics = dict[str, dict[str, float]]


def make() -> tuple[Metrics, list[str]]:
    """Metrics as in a dumped JSON file, and checks of the kinds that NeMo-RL's suites hold."""
    draw = random.Random(0)
    metrics = {
        f"train/group_{n % 40}/metric_{n}": {str(s): draw.uniform(0.5, 1.5) for s in range(1, STEPS + 1)}
        for n in range(TAGS)
    }
    shapes = [
        'max(data["{t}"]) < 1.45',
        'min(data["{t}"]) > 0.55',
        'mean(data["{t}"], -10, -1) < 1.2',
        'median(data["{t}"]) > 0.9',
        'data["{t}"]["50"] < 1.0',
        'ratio_above(data["{t}"], 1.4) < 0.2',
        'mean(data["{t}"], ignore_top_p=0.05) < 1.1',
        '(data["{t}"]["1"] - mean(data["{t}"], -6, -1)) / data["{t}"]["1"] > 0.1',
    ]
    tags = draw.choices(sorted(metrics), k=CHECKS)
    return metrics, [shapes[n % len(shapes)].format(t=tag) for n, tag in enumerate(tags)]


def ranged(value: Mapping[str, float], start: int, end: int) -> list[float]:
    """The documented ranges over {step: value}."""
    last = max(int(step) for step in value)
    start = start + last + 1 if start < 0 else start
    end = end + last + 1 if end <= 0 else end
    return [v for step, v in value.items() if start <= int(step) < end]


def mean(
    value: Mapping[str, float], range_start: int = 1, range_end: int = 0, ignore_top_p: float = 0
) -> float:
    """The documented mean."""
    chosen = ranged(value, range_start, range_end)
    if ignore_top_p:
        chosen = sorted(chosen)[: int(len(chosen) * (1 - ignore_top_p))]
    return statistics.mean(chosen)


HELPERS: dict[str, Callable[..., Any]] = {
    "min": lambda value: min(value.values()),
    "max": lambda value: max(value.values()),
    "mean": mean,
    "median": lambda value, start=1, end=0: statistics.median(ranged(value, start, end)),
    "ratio_above": lambda value, limit: sum(v >= limit for v in value.values()) / len(value),
}


def left_side(check: str) -> str:
    """What stands before the first comparison sign."""
    return check.split(">", maxsplit=1)[0].split("<", maxsplit=1)[0].split("==", maxsplit=1)[0].strip()


def with_eval(metrics: Metrics, checks: list[str]) -> list[bool]:
    """Value and verdict by eval()."""
    names = {"data": metrics, **HELPERS}
    verdicts = []
    for check in checks:
        eval(left_side(check), {}, names)
        verdicts.append(bool(eval(check, {}, names)))
    return verdicts


def with_simpleeval(metrics: Metrics, checks: list[str]) -> list[bool]:
    """Value and verdict by simpleeval."""
    from simpleeval import EvalWithCompoundTypes

    evaluator = EvalWithCompoundTypes(names={"data": metrics}, functions=HELPERS)
    verdicts = []
    for check in checks:
        evaluator.eval(left_side(check))
        verdicts.append(bool(evaluator.eval(check)))
    return verdicts


def with_proveout(metrics: Metrics, checks: list[str]) -> list[bool]:
    """All of a check: parsing, value, verdict, the search for NaN, whether it can fail, what to note."""
    return [outcome.passed for outcome in check_all(Data(TABLES[id(metrics)]), checks)]


TABLES: dict[int, MetricTable] = {}


def main() -> None:
    """Print the table as Markdown."""
    metrics, checks = make()
    TABLES[id(metrics)] = MetricTable(
        {tag: Series.of({int(step): v for step, v in points.items()}) for tag, points in metrics.items()}
    )
    ways = {"proveout": with_proveout, "eval()": with_eval, "simpleeval": with_simpleeval}
    answers = {name: way(metrics, checks) for name, way in ways.items()}
    if len({tuple(answer) for answer in answers.values()}) != 1:
        sys.exit(f"the answers differ: {answers}")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    walls: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        for name, way in ways.items():
            if name == "simpleeval" and turn:
                continue
            begin, wall_begin = time.process_time(), time.perf_counter()
            way(metrics, checks)
            seconds[name].append((time.process_time() - begin) * 1000)
            walls[name].append((time.perf_counter() - wall_begin) * 1000)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    print("# Metric checks\n")
    print(f"{CHECKS} checks over {TAGS} tags of {STEPS} steps; {sum(answers['proveout'])} of them hold.")
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, shared with much other work while it ran:"
    )
    print(f"the processor time counts (median of {ROUNDS} alternating rounds, simpleeval one round).")
    print("Made by `python benchmarks/checks.py`.\n")
    print(
        "| Evaluator | processor ms | fastest | wall ms, fastest | against proveout |\n|---|---|---|---|---|"
    )
    for name, value in middle.items():
        fastest, wall = min(seconds[name]), min(walls[name])
        print(f"| {name} | {value:.1f} | {fastest:.1f} | {wall:.1f} | {value / middle['proveout']:.2f}x |")
    print(
        "\nproveout's time includes what the other two leave out: refusing hostile syntax, looking for NaN in every"
    )
    print(
        "series that a check names, finding out whether the check can fail at all, and which steps break it. It"
    )
    print("stands on a fresh `Data` every round.")


if __name__ == "__main__":
    main()
