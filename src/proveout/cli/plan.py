"""``proveout plan``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from proveout.cli import options
from proveout.cli.request import located, plan_request, planning_options
from proveout.domain.finding import Severity
from proveout.domain.verdict import EXIT_USAGE

if TYPE_CHECKING:
    from proveout.flow.planning import Planned


@click.command("plan")
@click.argument("paths", nargs=-1)
@planning_options
@click.option(
    "--override", "overrides", multiple=True, metavar="[LOOP:]KEY=VALUE", help="Passed on to the loop."
)
@click.option("--explain", metavar="PATH", help="Say which rule decides for PATH, and stop.")
@click.option("--commands", is_flag=True, help="Print a shell script of the steps.")
@options.as_json
def command(
    paths: tuple[str, ...],
    overrides: tuple[str, ...],
    explain: str | None,
    commands: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Which levels of which loops a change needs, why, and the exact commands in these checkouts.

    PATHS name changed files or directories; without them the change is read from git. Nothing is started
    and nothing in a checkout is written. Exit status 2 when an override would be rejected.
    """
    import msgspec

    from proveout.flow.planning import make_plan
    from proveout.plan import output

    if explain is not None:
        return _explain(explain, located(asked), as_json)
    planned = make_plan(plan_request(asked, paths, overrides))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(as_data(planned)), indent=2).decode())
    elif commands:
        click.echo(output.as_script(planned.plan), nl=False)
    elif sys.stdout.isatty():
        _show(planned)
    else:
        click.echo(output.as_text(planned.plan, source(planned)), nl=False)
    rejected = [item for item in planned.plan.findings if item.severity is Severity.ERROR]
    if rejected and (commands or as_json):
        for item in rejected:
            click.echo(f"proveout: {output.finding_line(item)}", err=True)
    return EXIT_USAGE if rejected else 0


def as_data(planned: Planned) -> dict[str, object]:
    """The published JSON of a plan with its checkouts and change."""
    import msgspec

    from proveout.plan import output

    data = output.as_data(planned.plan)
    data["change"] = {
        "source": planned.change.source,
        "whole": list(planned.change.whole),
        "files": [
            {"role": file.role, "path": file.path, "status": file.status} for file in planned.change.files
        ],
        "ignored": {reason: list(paths) for reason, paths in planned.reading.ignored.items()},
        "families": msgspec.to_builtins(planned.reading.families),
    }
    data["checkouts"] = msgspec.to_builtins(planned.checkouts)
    data["vendored_bridge"] = msgspec.to_builtins(planned.drift)
    return data


def source(planned: Planned) -> str:
    """One line that says what the change is."""
    change = planned.change
    number = len(change.files)
    return change.source + (f" ({number} file{'s' if number != 1 else ''})" if not change.whole else "")


def _explain(path: str, checkouts: dict[str, str], as_json: bool) -> int:
    import msgspec

    from proveout.plan.explain import explain, lines

    found = explain(path, checkouts)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo("\n".join(lines(found)))
    return 0


def _show(planned: Planned) -> None:
    """The plan on a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from proveout.plan import output

    plan, console = planned.plan, Console()
    console.print(f"[bold]Change[/] {escape(source(planned))}    [bold]Model[/] {escape(plan.model)}")
    levels = Table("loop", "level", "variant", "why", box=None, header_style="dim")
    for item in plan.levels:
        if item.requested:
            levels.add_row(item.loop, str(item.level), item.variant, escape(output.shorten(item.reason)))
    console.print(levels)
    for line in output.not_requested(plan):
        console.print(f"[dim]not requested: {escape(line)}[/]")
    steps = Table("step", "GPUs", "min", "what", box=None, header_style="dim")
    for step in plan.steps:
        what = (
            f"[yellow]skipped: {escape(step.skip_reason)}[/]"
            if step.skip_reason
            else escape(step.deliverable)
        )
        steps.add_row(step.id, str(step.resources.gpus), f"{step.resources.minutes:g}", what)
    console.print(steps)
    minutes, gpu_hours = output.totals(plan)
    console.print(f"together about {minutes:g} minutes, {gpu_hours:.1f} GPU-hours")
    for text in plan.substitutions:
        console.print(f"[cyan]instead:[/] {escape(text)}")
    for text in plan.limitations:
        console.print(f"[dim]limitation: {escape(text)}[/]")
    colours = {Severity.ERROR: "red", Severity.WARNING: "yellow"}
    for finding in plan.findings:
        if finding.severity in colours:
            console.print(f"[{colours[finding.severity]}]{escape(output.finding_line(finding))}[/]")
