"""``proveout history tests``: the dated results files of a test suite over time."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.domain.errors import UsageError
from proveout.domain.verdict import EXIT_STATUS, Verdict

if TYPE_CHECKING:
    from proveout.pytest_plugin.history.trend import Trend, Worse

_PLACES = ("tests/unit/unit_results", "unit_results")


@click.command(name="tests")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--metric", multiple=True, metavar="NAME", help="Only these metrics (* and ? match).")
@click.option("--test", "tests", multiple=True, metavar="TEST", help="Only tests whose id contains this.")
@click.option(
    "--last", default=20, show_default=True, type=click.IntRange(1), help="Earlier sessions to use."
)
@click.option("--at-least", default=5, show_default=True, type=click.IntRange(2), help="... and the fewest.")
@click.option("--sigmas", default=4.0, show_default=True, help="Robust deviations that count as moved.")
@click.option("--min-change", default=0.1, show_default=True, help="Share of the median that counts, too.")
@click.option(
    "--worse", multiple=True, metavar="NAME=WAY", help="Which way a metric gets worse: higher, lower, either."
)
@click.option("--all", "show_all", is_flag=True, help="Show steady metrics too.")
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 on a regression, 3 if nothing was decided.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    directory: Path | None,
    metric: tuple[str, ...],
    tests: tuple[str, ...],
    last: int,
    at_least: int,
    sigmas: float,
    min_change: float,
    worse: tuple[str, ...],
    show_all: bool,
    fail_on_regression: bool,
    as_json: bool,
) -> int:
    """Trends and regressions of the newest session in DIRECTORY of dated results files.

    The newest session is held against the ones before it: median and median absolute deviation. DIRECTORY is
    tests/unit/unit_results or unit_results of this directory unless it is named.
    """
    from proveout.pytest_plugin.history.files import load
    from proveout.pytest_plugin.history.trend import Rule, State, trends
    from proveout.pytest_plugin.tracking.finish import recover
    from proveout.pytest_plugin.tracking.layout import ResultsLayout

    where = _directory(directory)
    try:
        recover(ResultsLayout(where.parent / f"{where.name}.json"))
    except OSError as error:
        click.echo(f"proveout: killed sessions could not be recovered: {error}", err=True)
    loaded = load(where)
    for sentence in loaded.unreadable:
        click.echo(f"proveout: {sentence}", err=True)
    if not loaded.sessions:
        raise UsageError("holds no results file", where=str(where), remedy="run tests that use the tracker")
    rule = Rule(last=last, at_least=at_least, sigmas=sigmas, min_change=min_change)
    found = [trend for trend in trends(loaded.sessions, rule, _ways(worse)) if _wanted(trend, metric, tests)]
    regressed = [trend for trend in found if trend.state is State.REGRESSED]
    decided = [trend for trend in found if trend.state is not State.UNDECIDED]
    verdict = Verdict.FAIL if regressed else Verdict.PASS if decided else Verdict.BLOCKED
    if as_json:
        _print_json(found, verdict, loaded.sessions[-1].file, loaded.unreadable)
    else:
        moved = [trend for trend in found if trend.state in (State.REGRESSED, State.IMPROVED)]
        _print_table(found if show_all or metric or tests else moved)
        undecided = len(found) - len(decided)
        click.echo(f"{verdict}: {len(regressed)} regressed of {len(decided)} decided, {undecided} undecided")
    return EXIT_STATUS[verdict] if fail_on_regression else 0


def _directory(given: Path | None) -> Path:
    candidates = [given] if given else [Path(place) for place in _PLACES]
    for place in candidates:
        if place.is_dir():
            return place
    raise UsageError(
        "no such directory of dated results files",
        where=" or ".join(map(str, candidates)),
        remedy="name the directory: proveout history tests DIRECTORY",
    )


def _ways(given: tuple[str, ...]) -> dict[str, Worse]:
    from proveout.pytest_plugin.history.trend import Worse

    ways = {}
    for each in given:
        name, _, way = each.rpartition("=")
        if not name or way not in set(Worse):
            raise UsageError(f"--worse {each!r}: needs NAME=higher, NAME=lower or NAME=either")
        ways[name] = Worse(way)
    return ways


def _wanted(trend: Trend, metrics: tuple[str, ...], tests: tuple[str, ...]) -> bool:
    return (not metrics or any(fnmatchcase(trend.metric, pattern) for pattern in metrics)) and (
        not tests or any(part in trend.test for part in tests)
    )


def _print_json(found: list[Trend], verdict: Verdict, newest: str, unreadable: tuple[str, ...]) -> None:
    import msgspec

    answer = {"verdict": verdict, "newest": newest, "trends": found, "unreadable": unreadable}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(answer)).decode() + "\n")


def _print_table(shown: list[Trend]) -> None:
    from rich.console import Console

    from proveout.pytest_plugin.history.render import render

    if shown:
        render(shown, Console(width=None if sys.stdout.isatty() else 200))
