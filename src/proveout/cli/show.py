"""Prints what commands found, and gives the exit status that belongs to it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.files import write_atomic
from proveout.domain.report import Report
from proveout.domain.step import Plan
from proveout.domain.verdict import EXIT_STATUS
from proveout.report import render


def show_report(report: Report, form: str, *, redacted: bool = True, output: Path | None = None) -> int:
    """Print a report in one format, or write it to ``output``; the exit status of its verdict.

    Raises UsageError where ``output`` cannot be written.
    """
    text = render(report, form, redacted=redacted)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            write_atomic(output, text)
        except OSError as error:
            raise UsageError(
                f"cannot be written: {error.strerror or error}",
                where=str(output),
                remedy="give --output a file in a directory that can be written",
            ) from error
    return EXIT_STATUS[report.result]


def show_plan(plan: Plan, as_json: bool) -> int:
    """Print a plan: levels with reasons, then the commands."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(plan), indent=2))
        return 0
    for level in plan.levels:
        asked = "requested" if level.requested else "not requested"
        click.echo(f"{level.loop} level {level.level}: {asked} - {level.reason}")
    for step in plan.steps:
        click.echo(f"\n# {step.id}: {step.deliverable}, about {step.resources.minutes:g} min")
        click.echo(shlex.join(step.command.argv))
    return 0
