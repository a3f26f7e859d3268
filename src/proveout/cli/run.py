"""``proveout run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.detached import go_on_detached
from proveout.cli.launching import (
    budget_of,
    budget_options,
    budget_words,
    launch_of,
    launch_options,
    stop_words,
)
from proveout.cli.request import plan_request, planning_options


@click.command("run")
@click.argument("overrides", nargs=-1, metavar="[[LOOP:]KEY=VALUE]...")
@planning_options
@launch_options
@budget_options
@click.option("--stop-at-first/--keep-going", default=False, help="Stop after the first step that fails.")
@click.option(
    "--matrix",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Models x levels x loops x seeds x commits, from a TOML file.",
)
@click.option(
    "--detach", is_flag=True, help="Go on in the background; 'watch', 'cancel' and 'resume' find the run."
)
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@click.option(
    "--against", "revision", metavar="REV", help="Run what does not pass again on this commit: whose failure?"
)
@click.option(
    "--repeat",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="With --against: how often each side runs.",
)
@click.option("--ray-stop", is_flag=True, help="First end the Ray cluster that the run would join, if yours.")
@options.state_dir
@options.as_json
def command(
    overrides: tuple[str, ...],
    stop_at_first: bool,
    matrix: Path | None,
    detach: bool,
    dry_run: bool,
    revision: str | None,
    repeat: int,
    ray_stop: bool,
    state_dir: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Plan, preflight, launch, judge and report.

    Without arguments: levels 0 (smoke) and 6 (learning signal) of the built-in bench loop, on this machine.
    With checkouts: the levels that the change in them asks for. KEY=VALUE words are passed on to the loop and
    checked against its configuration first.
    """
    from proveout.cli.matrix import run_matrix
    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_plan, show_report
    from proveout.domain.errors import UsageError
    from proveout.flow.against import against
    from proveout.flow.execute import Policy
    from proveout.flow.planning import make_plan
    from proveout.flow.prove import prepare, prove, refuse_rejected
    from proveout.flow.ray_stop import with_ray_stopped
    from proveout.store.runs import runs_root

    policy = Policy(launch=launch_of(asked), budget=budget_of(asked), keep_going=not stop_at_first)
    request = plan_request(asked, (), overrides)
    if matrix is not None:
        if detach:
            raise UsageError(
                "--matrix and --detach do not go together", remedy="start it under nohup, or leave one out"
            )
        return run_matrix(matrix, request, policy, state_dir, dry_run=dry_run, as_json=as_json)
    planned = make_plan(request)
    refuse_rejected(planned.plan)
    other = against(planned, revision, repeat) if revision is not None else None
    if dry_run:
        return show_plan(planned.plan, as_json)
    if ray_stop:
        planned = with_ray_stopped(planned)
    if detach:
        more = [*stop_words(stop_at_first), *budget_words(policy.budget)]
        return go_on_detached(prepare(planned, runs_root(state_dir), policy, other), more, as_json)
    report = prove(planned, runs_root(state_dir), policy, ConsoleObserver(), other)
    return show_report(report, "json" if as_json else "text")
