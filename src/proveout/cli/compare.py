"""``proveout compare``: two runs or metric files, tag by tag."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.cli import options

if TYPE_CHECKING:
    from proveout.domain.metrics import MetricTable
    from proveout.judge.compare import Comparison, TagComparison
    from proveout.judge.metricfile import MetricFile
    from proveout.judge.tolerance import Tolerance


def _tolerances(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, Tolerance]:
    from proveout.judge.tolerance import Tolerance

    found = {}
    for text in values:
        tag, sign, numbers = text.rpartition("=")
        relative, _, absolute = numbers.partition(",")
        try:
            found[tag] = Tolerance(rtol=float(relative), atol=float(absolute or 0))
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: give TAG=RTOL or TAG=RTOL,ATOL ({error})") from None
        if not sign or not tag:
            raise click.BadParameter(f"{text!r}: give TAG=RTOL or TAG=RTOL,ATOL")
    return found


@click.command("compare")
@click.argument("run")
@click.argument("baseline", required=False)
@click.option("--rtol", type=float, default=0.0, show_default=True, help="Relative tolerance of every tag.")
@click.option("--atol", type=float, default=0.0, show_default=True, help="Absolute tolerance of every tag.")
@click.option(
    "--tolerance",
    "tolerances",
    multiple=True,
    callback=_tolerances,
    metavar="TAG=RTOL[,ATOL]",
    help="Tolerance of one tag or glob; may be repeated.",
)
@click.option("--step", metavar="ID", help="The step to compare, where a run has several.")
@click.option(
    "--save-golden",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write RUN's metrics as a golden file, every digit, with the tolerances given.",
)
@click.option(
    "--format", "form", type=click.Choice(("text", "markdown", "html")), default="text", show_default=True
)
@options.state_dir
@options.as_json
def command(
    run: str,
    baseline: str | None,
    rtol: float,
    atol: float,
    tolerances: dict[str, Tolerance],
    step: str | None,
    save_golden: Path | None,
    form: str,
    state_dir: Path | None,
    as_json: bool,
) -> int:
    """Compare RUN with BASELINE.

    Two runs are compared step by step: verdicts, metrics, resolved configuration and environment, and whether a
    failure is new, pre-existing, flaky (both verdicts for the same code) or the environment's.

    Each is a run (its name, a prefix, a path, or latest), a metrics.json, a golden file, an event file or a
    directory of them. Without tolerances values must be equal. Lengths may differ: steps and tags that one side
    lacks are named, and count as a difference unless they measure the machine (timing, memory). HTML is the
    report of RUN with BASELINE beside it.

    Exit status: 0 within tolerance and no step worse or undecided (or golden file written), 1 different, 2 wrong
    usage.
    """
    from proveout.domain.errors import UsageError
    from proveout.judge.compare import compare_tables
    from proveout.judge.metricfile import save_golden as save
    from proveout.judge.tolerance import Tolerance

    if baseline is None and save_golden is None:
        raise click.UsageError("give a BASELINE to compare with, or --save-golden FILE")
    try:
        default = Tolerance(rtol=rtol, atol=atol)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if form != "text" and as_json:
        raise click.UsageError("--json and --format exclude each other")
    if baseline is not None and save_golden is None and _is_run(run) and _is_run(baseline):
        return _two_runs(run, baseline, (tolerances, default), step, state_dir, "json" if as_json else form)
    ours = _resolve(run, step, state_dir)
    if not ours.table.series:
        raise UsageError("no series to compare", where=run)
    if save_golden is not None:
        save(save_golden, ours.table, _all_tolerances(ours.table, tolerances, default), run)
        click.echo(f"written to {save_golden}: {len(ours.table.series)} tags", err=as_json)
    if baseline is None:
        return 0
    theirs = _resolve(baseline, step, state_dir)
    found = compare_tables(ours.table, theirs.table, theirs.tolerances | tolerances, default)
    if as_json:
        options.echo_json(metrics_document(found))
    elif form == "markdown":
        from proveout.cli.compare_runs import metrics_as_markdown

        click.echo("\n".join(metrics_as_markdown(found)))
    elif form == "html":
        raise UsageError(
            "HTML compares two runs, and one of these is a metric file", where=f"{run}, {baseline}"
        )
    else:
        show_metrics(found)
    return 0 if found.ok else 1


def _is_run(name: str) -> bool:
    path = Path(name)
    return not path.exists() or (path / "plan.json").exists()


def _two_runs(
    run: str,
    baseline: str,
    tolerances: tuple[dict[str, Tolerance], Tolerance],
    step: str | None,
    state_dir: Path | None,
    form: str,
) -> int:
    from proveout.cli.compare_runs import show
    from proveout.flow.comparing import compare_runs
    from proveout.store.runs import find, runs_root

    root = runs_root(state_dir)
    ours, theirs = find(root, run), find(root, baseline)
    found = compare_runs(ours, theirs, *tolerances, step)
    if form == "html":
        from proveout.flow.reporting import build
        from proveout.report import render

        click.echo(render(build(ours, theirs), "html"), nl=False)
    else:
        show(found, form)
    return 0 if found.ok else 1


def _all_tolerances(
    table: MetricTable, named: dict[str, Tolerance], default: Tolerance
) -> dict[str, Tolerance]:
    from proveout.judge.tolerance import EXACT, of_tag

    found = {tag: of_tag(tag, named, default) for tag in table.series}
    return {tag: tolerance for tag, tolerance in found.items() if tolerance != EXACT}


def _resolve(name: str, step: str | None, state_dir: Path | None) -> MetricFile:
    from proveout.cli.metric_input import read_metric_file
    from proveout.domain.errors import UsageError
    from proveout.store.runs import find, runs_root

    path = Path(name)
    if path.exists() and not (path / "plan.json").exists():
        return read_metric_file(path)
    run = find(runs_root(state_dir), name)
    latest = {step_id: files for _, step_id, files in run.attempts() if files.metrics.exists()}
    if not latest:
        raise UsageError("no attempt of this run left metrics", where=name)
    if step is None and len(latest) > 1:
        raise UsageError(
            f"several steps left metrics: {', '.join(latest)}", where=name, remedy="choose one: --step ID"
        )
    chosen = step if step is not None else next(iter(latest))
    if chosen not in latest:
        raise UsageError(f"no step {chosen!r} with metrics; there is {', '.join(latest)}", where=name)
    return read_metric_file(latest[chosen].metrics)


def metrics_document(found: Comparison) -> dict[str, object]:
    """A comparison as plain data."""
    import msgspec

    tags = [msgspec.to_builtins(tag) | {"ok": tag.ok} for tag in found.tags]
    return {
        "ok": found.ok,
        "tags": tags,
        "only_run": found.only_run,
        "only_baseline": found.only_baseline,
    }


def show_metrics(found: Comparison) -> None:
    """Print a comparison as a table, with what differs below."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    table = Table(title="Comparison", title_justify="left", box=None)
    table.add_column("Status")
    table.add_column("Tag", overflow="fold")
    for name in ("Steps", "Largest error", "at step", "Relative", "at step", "Allowed"):
        table.add_column(name, justify="right")
    for tag in sorted(found.tags, key=lambda one: (one.ok or not one.judged, not one.judged)):
        status = "same" if tag.ok else "DIFFERS" if tag.judged else "not judged"
        table.add_row(Text(status, style="red" if status == "DIFFERS" else ""), Text(tag.tag), *_numbers(tag))
    console.print(table)
    for tag in found.failing:
        console.print(Text(_detail(tag)))
    for side, names in (("BASELINE", found.only_run), ("RUN", found.only_baseline)):
        if names:
            console.print(Text(f"{side} lacks {len(names)} tags: {', '.join(names)}"))
    judged = [tag for tag in found.tags if tag.judged]
    same = sum(1 for tag in judged if tag.ok)
    console.print(Text(f"{same} of {len(judged)} judged tags are within tolerance"))


def _numbers(tag: TagComparison) -> tuple[str, ...]:
    def at(step: int | None) -> str:
        return "-" if step is None else str(step)

    return (
        str(len(tag.steps)),
        f"{tag.max_abs:.6g}",
        at(tag.max_abs_step),
        f"{tag.max_rel:.3g}",
        at(tag.max_rel_step),
        str(tag.tolerance),
    )


def _detail(tag: TagComparison) -> str:
    from proveout.domain.metrics import Series
    from proveout.judge.criteria.baseline import both
    from proveout.judge.say import steps_text
    from proveout.judge.sparkline import bars_for, sparkline

    lines = [f"\n{tag.tag}"]
    for name, values in (("run", tag.values), ("baseline", tag.baseline)):
        if values:
            series = Series.of(dict(zip(tag.steps, values, strict=True)))
            bars, _ = sparkline(series, bars=bars_for(sys.stdout.encoding))
            lines.append(f"  {name:<9}{bars}")
    if tag.offending:
        _, marks = sparkline(Series.of(dict.fromkeys(tag.steps, 0.0)), tag.offending)
        lines += [f"  {'':<9}{marks}", f"  differs at {steps_text(list(tag.offending))}: {both(tag)}"]
    if tag.only_run:
        lines.append(f"  the baseline lacks {steps_text(list(tag.only_run))}")
    if tag.only_baseline:
        lines.append(f"  the run lacks {steps_text(list(tag.only_baseline))}")
    return "\n".join(lines)
