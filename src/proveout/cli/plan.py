"""``proveout plan``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Severity
from proveout.domain.verdict import EXIT_USAGE

if TYPE_CHECKING:
    from proveout.flow.planning import Planned


@click.command("plan")
@click.argument("paths", nargs=-1)
@click.option("--bridge", help="Megatron-Bridge checkout under test. [$BRIDGE_REPO]")
@click.option("--mcore", help="Megatron-Core checkout under test. [$MCORE_REPO; else the Bridge's submodule]")
@click.option("--nemo-rl", "nemo_rl", help="NeMo-RL checkout. [$NEMO_RL_REPO]")
@click.option("--verl", help="verl checkout. [$VERL_REPO]")
@click.option("--base", help="What the change is compared with. [the merge base with the default branch]")
@click.option("--patch", help="The change is this patch file.")
@click.option("--whole", is_flag=True, help="The whole checkout is under test.")
@click.option("--loop", "loops", callback=options.words, help="Only these loops, comma-separated.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    metavar="[LOOP:]LEVELS[/VARIANT]",
    help="These instead of what the change asks for.",
)
@click.option("--add", multiple=True, metavar="[LOOP:]LEVELS[/VARIANT]", help="These besides.")
@click.option("--model", help="Checkpoint to run with: ORG/NAME or a local directory.")
@click.option(
    "--gpus", default=0, type=click.IntRange(0), help="GPUs at hand; steps that need more are skipped."
)
@click.option(
    "--override", "overrides", multiple=True, metavar="[LOOP:]KEY=VALUE", help="Passed on to the loop."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[LOOP:]NAME=VALUE",
    help="An option of the loop, or a variable of verl's wrapper.",
)
@click.option("--explain", metavar="PATH", help="Say which rule decides for PATH, and stop.")
@click.option("--commands", is_flag=True, help="Print a shell script of the steps.")
@options.as_json
def command(
    paths: tuple[str, ...],
    bridge: str | None,
    mcore: str | None,
    nemo_rl: str | None,
    verl: str | None,
    base: str | None,
    patch: str | None,
    whole: bool,
    loops: tuple[str, ...],
    levels: tuple[str, ...],
    add: tuple[str, ...],
    model: str | None,
    gpus: int,
    overrides: tuple[str, ...],
    settings: tuple[str, ...],
    explain: str | None,
    commands: bool,
    as_json: bool,
) -> int:
    """Which levels of which loops a change needs, why, and the exact commands in these checkouts.

    PATHS name changed files or directories; without them the change is read from git. Nothing is started
    and nothing in a checkout is written. Exit status 2 when an override would be rejected.
    """
    import msgspec

    from proveout.flow.planning import PlanRequest, make_plan
    from proveout.plan import output
    from proveout.plan.checkouts import locate
    from proveout.plan.choices import parse_choices
    from proveout.plan.settings import read_settings

    flags = {"bridge": bridge, "mcore": mcore, "nemo-rl": nemo_rl, "verl": verl}
    checkouts = locate(flags, os.environ, read_settings(Path.cwd()))
    if explain is not None:
        return _explain(explain, checkouts, as_json)
    planned = make_plan(
        PlanRequest(
            checkouts=checkouts,
            loops=loops,
            base=base,
            patch=patch,
            paths=paths,
            whole=whole,
            model=model,
            gpus=gpus,
            levels=parse_choices(levels, "--level"),
            add=parse_choices(add, "--add"),
            overrides=overrides,
            options=_settings(settings, loops or tuple(checkouts)),
        )
    )
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


def _settings(words: tuple[str, ...], loops: tuple[str, ...]) -> dict[str, dict[str, str]]:
    known = [name for name in loops if name in ("nemo-rl", "verl")]
    found: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        loop, colon, option = name.partition(":")
        if not equals or (colon and not option):
            raise UsageError(f"{word!r} is no setting", where="--set", remedy="write [LOOP:]NAME=VALUE")
        if not colon:
            loop, option = ("verl" if name.isupper() and "verl" in known else ""), name
            loop = loop or (known[0] if len(known) == 1 else "")
        if not loop:
            raise UsageError(
                f"{word!r} does not say for which loop", where="--set", remedy=f"write nemo-rl:{word}"
            )
        if colon and loop not in known:
            raise UsageError(f"loop {loop!r} is not in the plan{nearest(loop, known)}", where="--set")
        found.setdefault(loop, {})[option] = value
    return found


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
