"""``proveout run --matrix``: many cells, one run for each set of commits, one summary."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.cli.progress import ConsoleObserver
from proveout.domain.verdict import EXIT_STATUS, worst

if TYPE_CHECKING:
    from proveout.domain.report import Report
    from proveout.flow.planning import PlanRequest
    from proveout.flow.policy import Policy


def run_matrix(
    file: Path, request: PlanRequest, policy: Policy, state_dir: Path | None, *, dry_run: bool, as_json: bool
) -> int:
    """Plan and run a matrix; the exit status is that of the worst verdict."""
    from proveout.flow.matrix import plan_matrix, read_matrix
    from proveout.flow.prove import go_on_all, prepare, refuse_rejected
    from proveout.store.runs import runs_root

    root = runs_root(state_dir)
    planned = plan_matrix(read_matrix(file), request, root.parent / "trees")
    for each in planned:
        refuse_rejected(each.plan)
    if dry_run:
        steps = [step for each in planned for step in each.plan.steps]
        if as_json:
            options.echo_json([each.plan for each in planned])
        else:
            click.echo("\n".join(f"{step.id}: about {step.resources.minutes:g} min" for step in steps))
            click.echo(f"{len(steps)} steps in {len(planned)} runs")
        return 0
    runs = [prepare(each, root, policy) for each in planned]
    reports = go_on_all(runs, policy, ConsoleObserver())
    _show(reports, as_json)
    return EXIT_STATUS[worst(report.result for report in reports)]


def _show(reports: list[Report], as_json: bool) -> None:
    if as_json:
        options.echo_json(
            [
                {
                    "run": report.run.id if report.run else "",
                    "result": report.result,
                    "steps": _counts(report),
                }
                for report in reports
            ]
        )
        return
    for report in reports:
        name = report.run.id if report.run else ""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in _counts(report).items())
        click.echo(f"run {name}: {report.result.value} ({counts})")
        for step in report.steps:
            if step.verdict.value != "Pass":
                click.echo(
                    f"  {step.id}: {step.verdict.value}" + (f" - {step.reason}" if step.reason else "")
                )


def _counts(report: Report) -> dict[str, int]:
    return dict(Counter(step.verdict.value for step in report.steps))
