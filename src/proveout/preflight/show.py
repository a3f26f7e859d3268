"""Prints results and the catalogue: for people, and as JSON."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TextIO

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proveout.domain.finding import Finding, Severity
from proveout.domain.verdict import EXIT_STATUS, Verdict
from proveout.preflight.catalogue import CATALOGUE
from proveout.preflight.check import Check, Cost
from proveout.preflight.run import CheckResult, State

MARKS = {Severity.ERROR: ("x", "red"), Severity.WARNING: ("!", "yellow"), Severity.NOTICE: ("i", "cyan")}
ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTICE)
SCHEMA_VERSION = 1


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``doctor --json`` prints. ``verdict`` is Pass or Blocked."""

    verdict: Verdict
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    schema_version: int = SCHEMA_VERSION


class Progress:
    """Says on a terminal which slow check is under way, and takes the line away again."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream, self._live = stream, stream.isatty() and not quiet
        self._plain = not quiet and not stream.isatty()

    def begin(self, check: Check) -> None:
        """A check begins."""
        self.end()
        if self._live and check.cost is not Cost.INSTANT:
            self._stream.write(f"\r\x1b[Kchecking {check.id} ...")
        elif self._plain and check.cost is Cost.SLOW:
            self._stream.write(f"checking {check.id} (this takes a few seconds)\n")
        self._stream.flush()

    def end(self) -> None:
        """Nothing is under way."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def verdict(results: Sequence[CheckResult]) -> Verdict:
    """Blocked when any finding decides so."""
    decided = {finding.decides for result in results for finding in result.findings}
    return Verdict.BLOCKED if decided - {None} else Verdict.PASS


def exit_status(results: Sequence[CheckResult]) -> int:
    """0, or 3 when the run is blocked."""
    return EXIT_STATUS[verdict(results)]


def results_json(results: Sequence[CheckResult]) -> str:
    """The results as JSON."""
    findings = tuple(finding for result in results for finding in result.findings)
    report = DoctorReport(verdict=verdict(results), checks=tuple(results), findings=findings)
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def results(results: Sequence[CheckResult], width: int | None = None) -> str:
    """A table of what was found, worst first, and one line about the rest."""
    found = sorted(
        ((finding, result.id) for result in results for finding in result.findings),
        key=lambda pair: ORDER.index(pair[0].severity),
    )
    console = Console(file=io.StringIO(), width=width, highlight=False)
    if found:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("")
        table.add_column("check", no_wrap=True)
        table.add_column("found", ratio=1)
        for finding, check in found:
            table.add_row(Text(MARKS[finding.severity][0]), check, Text(_sentence(finding)))
        console.print(table)
    console.print(Text(_summary(results)))
    stream = console.file
    assert isinstance(stream, io.StringIO)  # noqa: S101 - made above
    return stream.getvalue()


def _sentence(finding: Finding) -> str:
    where = f" [{finding.where}]" if str(finding.where) else ""
    return finding.what + where + (f"\n-> {finding.remedy}" if finding.remedy else "")


def _summary(results: Sequence[CheckResult]) -> str:
    passed = sum(result.state is State.PASSED for result in results)
    idle = sum(result.state is State.NOT_APPLICABLE for result in results)
    decided = sum(finding.decides is not None for result in results for finding in result.findings)
    said = "Blocked" if decided else "Ready"
    return (
        f"{said}: {passed} checks passed, {len(results) - passed - idle} with findings "
        f"({decided} blocking), {idle} not applicable"
    )


def catalogue(*, markdown: bool = False) -> str:
    """The catalogue as a list for a terminal, or as the page of the documentation."""
    if not markdown:
        widest = max(map(len, CATALOGUE))
        return "".join(f"{c.id:<{widest}}  {c.cost:<7}  {c.proves}\n" for c in CATALOGUE.values())
    rows = "".join(f"| `{c.id}` | {c.proves} | {c.cost} | {c.remedy} |\n" for c in CATALOGUE.values())
    return (
        "# Preflight checks\n\n"
        "This page is printed by `proveout doctor --list --markdown`. A check runs when it applies to the\n"
        "loops, checkouts and steps at hand. *instant* is under 50 ms, *fast* under a second, *slow* more.\n"
        "A check that cannot check says so as a warning.\n\n"
        "| Check | What it proves | Cost | Remedy |\n|---|---|---|---|\n" + rows
    )


def catalogue_json() -> str:
    """The catalogue as JSON: a list of id, proves, cost, remedy."""
    rows = [{"id": c.id, "proves": c.proves, "cost": c.cost, "remedy": c.remedy} for c in CATALOGUE.values()]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"
