"""``proveout run``."""

from __future__ import annotations

from pathlib import Path

import click

from proveout.cli import options


@click.command("run")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--loop", "loops", callback=options.words, default="bench", help="Loops, comma-separated.")
@click.option("--level", "levels", callback=options.numbers, help="Levels, as 0,6 or 0-2.")
@click.option("--model", help="A local Hugging Face checkpoint directory; else the loop's default model.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--scheduler", default="local", show_default=True, help="Who starts the attempts.")
@click.option("--stop-at-first/--keep-going", default=False, help="Stop after the first step that fails.")
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@options.state_dir
@options.as_json
def command(
    overrides: tuple[str, ...],
    loops: tuple[str, ...],
    levels: tuple[int, ...],
    model: str | None,
    seed: int,
    scheduler: str,
    stop_at_first: bool,
    dry_run: bool,
    state_dir: Path | None,
    as_json: bool,
) -> int:
    """Plan, preflight, launch, judge and report.

    Without arguments: levels 0 (smoke) and 6 (learning signal) of the built-in bench loop, on this machine.
    KEY=VALUE words are passed on to the loop and checked against its configuration first.
    """
    from proveout import launch
    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_plan, show_report
    from proveout.flow.execute import Policy
    from proveout.flow.prove import prove
    from proveout.flow.request import RunRequest, make_plan
    from proveout.store.runs import runs_root

    request = RunRequest(loops=loops, levels=levels, model=model, seed=seed, overrides=overrides)
    if dry_run:
        return show_plan(make_plan(request), as_json)
    policy = Policy(scheduler=launch.scheduler(scheduler), keep_going=not stop_at_first)
    report = prove(request, runs_root(state_dir), policy, ConsoleObserver())
    return show_report(report, "json" if as_json else "text")
