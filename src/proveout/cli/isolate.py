"""``proveout isolate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_of, launch_options

if TYPE_CHECKING:
    from proveout.domain.isolation import Isolation, Tried
    from proveout.flow.isolation_case import Case


@click.command("isolate")
@click.argument("run", default="latest")
@click.option("--step", default="", metavar="ID", help="Which failed step; the first one by default.")
@click.option(
    "--max-runs", type=click.IntRange(min=1), default=12, show_default=True, help="Re-runs at most."
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Minutes of re-runs at most.",
)
@click.option(
    "--control/--no-control",
    default=True,
    show_default=True,
    help="First run the command unchanged: where that passes, the failure does not repeat.",
)
@launch_options
@click.option("--dry-run", is_flag=True, help="Print the ladder with its commands and start nothing.")
@options.state_dir
@options.as_json
def command(
    run: str,
    step: str,
    max_runs: int,
    max_minutes: float,
    control: bool,
    dry_run: bool,
    state_dir: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Re-run a failed step of RUN (its name, a prefix, a path, or latest) with one thing changed at a time.

    Stops at the first re-run that passes by the step's own criteria, and says what that proves and what not.
    Nothing of it counts as a pass: the run keeps its verdict, and its report cites the re-runs as isolation.

    Exit status: that of the step's verdict, which stays as it was (1 Fail, 3 Blocked, 4 Incomplete).
    """
    from proveout.cli.progress import ConsoleObserver
    from proveout.domain.verdict import EXIT_STATUS
    from proveout.flow.isolate import Budget, isolate
    from proveout.flow.isolation_case import case_of, preview
    from proveout.flow.prove import write_reports
    from proveout.store.runs import find, runs_root

    found = find(runs_root(state_dir), run)
    case = case_of(found, step, control=control)
    if dry_run:
        _show_ladder(case, preview(found, case), as_json)
        return 0
    budget = Budget(runs=max_runs, minutes=max_minutes)
    result = isolate(found, case, launch_of(asked, found.launch_site()), budget, ConsoleObserver())
    write_reports(found)
    if as_json:
        options.echo_json(result)
    else:
        _show(result)
    return EXIT_STATUS[result.verdict]


def _show_ladder(case: Case, rungs: tuple[Tried, ...], as_json: bool) -> None:
    if as_json:
        options.echo_json(
            {
                "step": case.step.id,
                "attempt": case.attempt.directory,
                "boundary": case.failure.boundary,
                "subkind": case.failure.subkind,
                "stage": case.failure.stage,
                "ladders": case.ladders,
                "rungs": rungs,
            }
        )
        return
    kind = f" ({case.failure.subkind})" if case.failure.subkind else ""
    click.echo(f"{case.step.id}, {case.attempt.directory}: {case.failure.boundary.value}{kind}")
    click.echo(f"ladders: {', '.join(case.ladders)}")
    for rung in rungs:
        click.echo(f"{rung.rung}: {rung.title}")
        click.echo(f"  not run: {rung.reason}" if rung.reason else f"  {rung.command}")


def _show(result: Isolation) -> None:
    click.echo(f"Isolation: {result.outcome.value} - {result.summary}")
    for name, text in (
        ("Proves", result.proves),
        ("Does not prove", result.does_not_prove),
        ("Limitation", result.limitation),
    ):
        if text:
            click.echo(f"{name}: {text}")
    for rung in result.tried:
        reason = f" ({rung.reason})" if rung.reason else ""
        place = f" {rung.directory}" if rung.directory else ""
        click.echo(f"- {rung.rung}: {rung.rerun.value}{reason}{place}")
