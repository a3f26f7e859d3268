"""``proveout run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_of, launch_options
from proveout.cli.request import plan_request, planning_options


@click.command("run")
@click.argument("overrides", nargs=-1, metavar="[[LOOP:]KEY=VALUE]...")
@planning_options
@launch_options
@click.option("--stop-at-first/--keep-going", default=False, help="Stop after the first step that fails.")
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@options.state_dir
@options.as_json
def command(
    overrides: tuple[str, ...],
    stop_at_first: bool,
    dry_run: bool,
    state_dir: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Plan, preflight, launch, judge and report.

    Without arguments: levels 0 (smoke) and 6 (learning signal) of the built-in bench loop, on this machine.
    With checkouts: the levels that the change in them asks for. KEY=VALUE words are passed on to the loop and
    checked against its configuration first.
    """
    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_plan, show_report
    from proveout.flow.execute import Policy
    from proveout.flow.planning import make_plan
    from proveout.flow.prove import prove, refuse_rejected
    from proveout.store.runs import runs_root

    policy = Policy(launch=launch_of(asked), keep_going=not stop_at_first)
    planned = make_plan(plan_request(asked, (), overrides))
    refuse_rejected(planned.plan)
    if dry_run:
        return show_plan(planned.plan, as_json)
    report = prove(planned, runs_root(state_dir), policy, ConsoleObserver())
    return show_report(report, "json" if as_json else "text")
