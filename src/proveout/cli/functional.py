"""``proveout functional``: one functional script of NeMo-RL, run and judged like a step of a level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proveout.cli import options
from proveout.cli.launching import launch_of, launch_options
from proveout.cli.request import located


@click.command("functional")
@click.argument("script")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--dry-run", is_flag=True, help="Print the command and start nothing.")
@click.option("--bridge", help="Megatron-Bridge checkout under test. [$BRIDGE_REPO]")
@click.option("--mcore", help="Megatron-Core checkout under test. [$MCORE_REPO]")
@click.option("--nemo-rl", help="NeMo-RL checkout. [$NEMO_RL_REPO]")
@click.option("--model", help="Model name or directory, in place of the script's own.")
@click.option(
    "--gpus", default=0, type=click.IntRange(0), help="GPUs at hand; a script that needs more is skipped."
)
@launch_options
@options.state_dir
@options.as_json
def command(
    script: str,
    overrides: tuple[str, ...],
    dry_run: bool,
    state_dir: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Run SCRIPT of NeMo-RL's tests/functional (a name or a path) with overrides, and print its metric checks.

    The script's own checks are judged with what proveout asks of every run: its last step, finite metrics,
    artifacts of this run, no known sign of a hidden failure.
    """
    import msgspec

    from proveout.cli.progress import ConsoleObserver
    from proveout.cli.show import show_plan, show_report
    from proveout.domain.errors import UsageError, nearest
    from proveout.flow.execute import Policy
    from proveout.flow.planning import PlanRequest, make_plan
    from proveout.flow.prove import prove, refuse_rejected
    from proveout.loops.nemo_rl.variants import level_of
    from proveout.plan.choices import Choice
    from proveout.store.runs import runs_root

    launching = launch_of(asked)
    checkouts = located({**asked, "verl": None})
    name = Path(script).name.removesuffix(".sh")
    root = checkouts.get("nemo-rl")
    if root is None:
        raise UsageError(
            "a functional script needs a NeMo-RL checkout", remedy="give --nemo-rl PATH or set NEMO_RL_REPO"
        )
    folder = Path(root) / "tests" / "functional"
    if not (folder / f"{name}.sh").is_file():
        known = sorted(path.stem for path in folder.glob("*.sh"))
        raise UsageError(f"no functional script {name!r}{nearest(name, known)}", where=str(folder))
    request = PlanRequest(
        checkouts={role: path for role, path in checkouts.items() if role != "verl"},
        loops=("nemo-rl",),
        levels=(Choice("nemo-rl", level_of(name), f"{name}.sh"),),
        model=asked["model"],
        gpus=asked["gpus"],
        overrides=overrides,
    )
    planned = make_plan(request)
    steps = tuple(step for step in planned.plan.steps if step.coverage.variant == f"{name}.sh")
    planned = msgspec.structs.replace(planned, plan=msgspec.structs.replace(planned.plan, steps=steps))
    refuse_rejected(planned.plan)
    if dry_run:
        return show_plan(planned.plan, as_json)
    policy = Policy(launch=launching)
    report = prove(planned, runs_root(state_dir), policy, ConsoleObserver())
    status = show_report(report, "json" if as_json else "text")
    if not as_json:
        _show_checks(report)
    return status


def _show_checks(report: Any) -> None:
    rows = [row for step in report.steps for attempt in step.attempts[-1:] for row in attempt.checks]
    click.echo("\nMetric checks:" if rows else "\nMetric checks: none were made")
    for row in rows:
        message = f"  ({row.message})" if row.message else ""
        click.echo(f"  {'pass' if row.passed else 'FAIL'}  {row.check}  value {row.value}{message}")
