"""``proveout dump``: the scalars of event files as JSON; NeMo-RL's json_dump_tb_logs.py, same arguments."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from proveout.capture.dump import Dump
    from proveout.domain.metrics import MetricTable, Series


@click.command("dump")
@click.argument("log_dir")
@click.option("--output_path", "--output-path", metavar="FILE", help="Where to write the JSON.")
@click.option("--error-on-conflicts", is_flag=True, help="Exit 1 where any two values of one step differ.")
@click.option(
    "--require-tag-prefix", metavar="TEXT", help="Exit 1 where no tag of any kind begins with this."
)
@click.option(
    "--runs",
    "which",
    default="newest",
    show_default=True,
    metavar="newest|all|NAME",
    help="Which runs to write where several are found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(
    log_dir: str,
    output_path: str | None,
    error_on_conflicts: bool,
    require_tag_prefix: str | None,
    which: str,
    as_json: bool,
) -> int:
    """Write the scalars of all event files below LOG_DIR as {tag: {"step": value}}.

    Takes the arguments of NeMo-RL's json_dump_tb_logs.py and writes the same JSON. Runs are kept apart: files
    under different exp_N directories, or files whose records do not overlap in time. By default the newest
    run is written, with the runs that it goes on from (it begins after their first step, as a resumed run
    does); runs before a run that started over are left out and named. --runs all writes all of them, later
    values winning; --runs exp_001 writes one. NaN and infinities are written as "NaN", "Infinity" and
    "-Infinity": the file is valid JSON.

    Exit status: 0 written, 1 no event files, a conflict (--error-on-conflicts) or no such tag
    (--require-tag-prefix), 2 wrong usage.
    """
    from proveout.capture.dump import conflicts_of_all, dump
    from proveout.capture.metrics_json import write_metrics_json
    from proveout.domain.errors import UsageError

    found = dump(Path(log_dir), which)
    problem = _problem(
        found, log_dir, require_tag_prefix, conflicts_of_all(found) if error_on_conflicts else None
    )
    if problem is None and output_path:
        try:
            write_metrics_json(found.table, Path(output_path))
        except OSError as error:
            raise UsageError(
                error.strerror or "cannot be written",
                where=output_path,
                remedy="give --output_path a file in a directory that exists and can be written",
            ) from error
    for finding in found.findings:
        where = f"{finding.where}: " if str(finding.where) else ""
        sys.stderr.write(f"{finding.severity.value}: {where}{finding.what}\n")
    if as_json:
        click.echo(_document(found, output_path if problem is None else None, problem))
    elif problem is None:
        _show(found, output_path)
    if problem is not None:
        sys.stderr.write(f"proveout: {problem}\n")
        return 1
    return 0


def _problem(found: Dump, log_dir: str, prefix: str | None, whole: MetricTable | None) -> str | None:
    if not found.runs:
        return f"no TensorBoard event files below {log_dir}; give the directory that the run logged to"
    if whole is not None and whole.conflicts:
        first = whole.conflicts[0]
        return (
            f"{first.tag} has two values at step {first.step}: {first.kept!r} in "
            f"{whole.series[first.tag].source}, {first.other!r} in {first.source} "
            f"({len(whole.conflicts)} conflicts in all); "
            "without --error-on-conflicts the later value is written"
        )
    if prefix is not None and not any(tag.startswith(prefix) for tag in found.tags):
        return (
            f"no tag begins with {prefix!r} below {log_dir}; the {len(found.tags)} tags are listed by --json"
        )
    return None


def _document(found: Dump, written: str | None, problem: str | None) -> str:
    import msgspec

    chosen = [run.name for run in found.chosen]
    document = {
        "written": written,
        "problem": problem,
        "runs": [
            {
                "name": run.name,
                "files": [reading.source for reading in run.readings],
                "first_step": run.first,
                "last_step": run.last,
                "chosen": run.name in chosen,
            }
            for run in found.runs
        ],
        "tags": {tag: len(series) for tag, series in sorted(found.table.series.items())},
        "other_tags": sorted(found.tags - set(found.table.series)),
        "conflicts": found.table.conflicts,
        "left_out": found.table.left_out,
        "findings": found.findings,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _show(found: Dump, output_path: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    runs = Table(title="Runs", title_justify="left", box=None)
    for heading in ("Run", "Files", "Training steps", "Written"):
        runs.add_column(heading)
    for run in found.runs:
        runs.add_row(run.name, str(len(run.readings)), run.steps, "yes" if run in found.chosen else "no")
    metrics = Table(title="Metrics", title_justify="left", box=None)
    metrics.add_column("Tag", overflow="fold")
    for heading in ("Steps", "Min", "Max", "Mean", "Last", "Not finite"):
        metrics.add_column(heading, justify="right")
    for tag in found.table.tags():
        metrics.add_row(tag, *_row(found.table.series[tag]))
    console.print(runs, markup=False)
    console.print(metrics, markup=False)
    click.echo(f"written to {output_path}" if output_path else "not written: give --output_path FILE")


def _row(series: Series) -> tuple[str, ...]:
    finite = [value for value in series.values if math.isfinite(value)]
    odd = str(len(series) - len(finite)) if len(finite) < len(series) else ""
    if not finite:
        return str(len(series)), "-", "-", "-", f"{series.values[-1]:.6g}", odd
    mean = math.fsum(finite) / len(finite)
    return (
        str(len(series)),
        f"{min(finite):.6g}",
        f"{max(finite):.6g}",
        f"{mean:.6g}",
        f"{series.values[-1]:.6g}",
        odd,
    )
