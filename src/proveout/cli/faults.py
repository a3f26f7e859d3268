"""``proveout faults``: known faults, put into real runs of the bench loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.flow.faulting import Outcome

PYTHON = click.option("--python", help="Interpreter with the bench packages. [that of the backend]")
LOOP = click.option("--loop", type=click.Choice(["bench"]), default="bench", show_default=True)
BACKEND = click.option("--backend", default="hf", show_default=True, help="Backend of the policy.")


@click.group(name="faults")
def command() -> None:
    """Would it be caught? Inject known faults into the bench loop and see."""


@command.command(name="list")
@options.as_json
def listed(as_json: bool) -> int:
    """The catalogue: each fault, where it is injected, the level that should see it, the boundary it belongs to."""
    from proveout.loops.bench.faults import catalogue

    if as_json:
        options.echo_json(catalogue())
        return 0
    for fault in catalogue():
        boundary = " or ".join(fault.boundary)
        click.echo(f"{fault.id:32} level {fault.level} {fault.step:12} {boundary:22} {fault.what}")
    click.echo(f"{len(catalogue())} faults")
    return 0


@command.command()
@click.option("--only", callback=options.words, help="Faults or groups, comma-separated. [all]")
@LOOP
@BACKEND
@PYTHON
@options.state_dir
@options.as_json
def run(
    only: tuple[str, ...], loop: str, backend: str, python: str | None, state_dir: Path | None, as_json: bool
) -> int:
    """Inject each fault into a real run in its own process; exit status 1 where a visible one escapes."""
    from proveout.flow.faulting import inject
    from proveout.flow.warm import bench_context

    def told(outcome: Outcome) -> None:
        if not as_json:
            click.echo(_row(outcome))

    outcomes = inject(only, context=bench_context(backend, python), state_dir=state_dir, told=told)
    visible = [outcome for outcome in outcomes if not outcome.reason]
    caught = [outcome for outcome in visible if outcome.caught]
    right = [outcome for outcome in caught if outcome.right]
    theirs = [outcome for outcome in visible if outcome.functional_checks_catch]
    if as_json:
        options.echo_json(
            {
                "loop": loop,
                "backend": backend,
                "faults": outcomes,
                "visible": len(visible),
                "caught": len(caught),
                "right_boundary": len(right),
                "functional_checks_catch": len(theirs),
            }
        )
    else:
        click.echo(
            f"{len(caught)} of {len(visible)} faults caught, {len(right)} with the expected boundary; the functional "
            f"tests' own checks catch {len(theirs)}; {len(outcomes) - len(visible)} not visible at their level"
        )
    return 0 if len(caught) == len(visible) else 1


@command.command()
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(1), help="How many runs.")
@click.option("--first", default=1000, show_default=True, type=click.IntRange(0), help="The first seed.")
@BACKEND
@PYTHON
@options.state_dir
@options.as_json
def clean(
    seeds: int, first: int, backend: str, python: str | None, state_dir: Path | None, as_json: bool
) -> int:
    """Sound runs with many seeds, over the levels and the faults' settings; exit status 1 for an alarm."""
    from proveout.flow.clean_runs import run_clean
    from proveout.flow.warm import bench_context

    def told(line: str) -> None:
        if not as_json:
            click.echo(line)

    alarms = run_clean(
        range(first, first + seeds), context=bench_context(backend, python), state_dir=state_dir, told=told
    )
    if as_json:
        options.echo_json({"runs": seeds, "first_seed": first, "alarms": alarms})
    else:
        click.echo(f"{len(alarms)} of {seeds} sound runs raised a finding above notice")
    return 1 if alarms else 0


def _row(outcome: Outcome) -> str:
    if outcome.caught:
        mark = "caught" if outcome.right else f"caught, but as {outcome.boundary or 'no boundary'}"
    else:
        mark = "not visible" if outcome.reason else "ESCAPED"
    at = f" at step {outcome.step}" if outcome.step is not None else ""
    theirs = "yes" if outcome.functional_checks_catch else "no"
    said = f": {outcome.finding}{at}" if outcome.finding else f": {outcome.reason}" if outcome.reason else ""
    return f"{outcome.fault:32} {mark:12} {outcome.verdict:8} functional checks: {theirs:3}{said}"
