"""Metric sources in, one metric table out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from proveout.capture.conflicts import as_findings, join
from proveout.capture.files import find
from proveout.capture.lineage import Lineage, newest, runs
from proveout.capture.reader import Reader
from proveout.capture.reading import Reading
from proveout.capture.registry import READERS
from proveout.capture.settle import settle
from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Finding, Severity, Where
from proveout.domain.metrics import Conflict, MetricTable
from proveout.domain.step import MetricSource

HEAD = 64 << 10


def read_metrics(
    sources: Sequence[MetricSource], base: Path, *, not_before: float | None = None
) -> tuple[MetricTable, tuple[Finding, ...]]:
    """The metrics of one attempt from all its sources, and what reading them showed.

    Paths and globs are relative to ``base``; a directory is searched for the format's files. ``not_before``
    is the attempt's start in epoch seconds: an event file or JSON lines with times whose first record is older,
    and another file last changed before it, are left out and named in ``left_out``. Of the runs in one source
    the newest counts, with those that it goes on from (see ``lineage``); the others are left out and named.
    Where several sources hold one tag, the first source's value is kept at each step and the others fill in
    steps that it lacks.

    Raises UsageError for a format that no reader reads. What cannot be read is a finding.
    """
    findings: list[Finding] = []
    table = MetricTable()
    for source in sources:
        if source.format not in READERS:
            raise UsageError(
                f"no reader for metric format {source.format!r}{nearest(source.format, READERS)}",
                remedy=f"use one of {', '.join(READERS)}",
            )
        reader = READERS[source.format]
        paths = find(base, source.path, reader.files)
        if not paths:
            findings.append(
                Finding(
                    id="capture.metrics.missing",
                    severity=Severity.WARNING,
                    what=f"no {source.format} metrics at {source.path}",
                    where=Where(file=str(base / source.path)),
                    remedy="look in the log for why the run wrote none, or correct the metric source",
                )
            )
            continue
        part = one_table(list(read_files(reader, paths, findings)), findings, not_before=not_before)
        findings.extend(as_findings(join(table, part)))
    return table, tuple(findings)


def read_any(path: Path) -> tuple[MetricTable, tuple[Finding, ...]]:
    """The metrics of a file or directory in whatever format it is; the content decides, not the name.

    Raises UsageError where the path is missing or no reader recognises it.
    """
    findings: list[Finding] = []
    if path.is_dir():
        reader, paths = _directory(path)
    else:
        reader, paths = recognise(path), [path]
    table = one_table(list(read_files(reader, paths, findings)), findings)
    return table, tuple(findings)


def recognise(path: Path) -> Reader:
    """The reader for a file, found by its content. Raises UsageError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        found = next((reader for reader in READERS.values() if reader.recognises(path, head)), None)
    except OSError as error:
        raise UsageError(
            error.strerror or "cannot be read", where=str(path), remedy="give a file that can be read"
        ) from error
    if found is None:
        raise UsageError(
            "no metrics that a reader recognises",
            where=str(path),
            remedy=f"give one of: {', '.join(READERS)}",
        )
    return found


def _directory(path: Path) -> tuple[Reader, list[Path]]:
    for reader in READERS.values():
        paths = find(path, ".", reader.files)
        if paths:
            return reader, paths
    raise UsageError(
        "no metric files in this directory",
        where=str(path),
        remedy="give a directory with event files, or a metrics file",
    )


def read_files(reader: Reader, paths: Sequence[Path], findings: list[Finding]) -> Iterator[Reading]:
    """The readings of these files in order; what they show, and files that cannot be read, go to findings."""
    for path in paths:
        try:
            readings = reader.read(path)
        except OSError as error:
            findings.append(
                Finding(
                    id="capture.metrics.unreadable",
                    severity=Severity.WARNING,
                    what=f"cannot be read: {error.strerror or error}",
                    where=Where(file=str(path)),
                )
            )
            continue
        for reading in readings:
            findings.extend(reading.all_findings())
            yield reading


def one_table(
    readings: Sequence[Reading], findings: list[Finding], *, not_before: float | None = None
) -> MetricTable:
    """The newest attempt among one source's readings; what is left out is named there and in findings."""
    stale = [r for r in readings if not_before is not None and (r.started or 0.0) < not_before]
    lineage = newest(runs(reading for reading in readings if reading not in stale))
    table = settle(lineage.readings())
    left_out = [(reading.source, "written before this attempt began") for reading in stale]
    left_out += replaced(lineage)
    table.left_out = [f"{name}: {why}" for name, why in left_out]
    findings.extend(other_attempt(name, why) for name, why in left_out)
    findings.extend(conflict_findings(table, lineage))
    return table


def conflict_findings(table: MetricTable, lineage: Lineage) -> list[Finding]:
    """The conflicts of a table: steps that a resumed run trained again in one notice, the others by tag."""
    again: list[Conflict] = []
    within = table.conflicts
    if len(lineage.kept) > 1:
        inside = {_key(conflict) for run in lineage.kept for conflict in settle(run.readings).conflicts}
        again = [conflict for conflict in table.conflicts if _key(conflict) not in inside]
        within = [conflict for conflict in table.conflicts if _key(conflict) in inside]
    findings = as_findings(within)
    if again:
        steps = sorted({conflict.step for conflict in again})
        findings.append(
            Finding(
                id="capture.metrics.trained-again",
                severity=Severity.NOTICE,
                what=f"steps {steps[0]} to {steps[-1]} were trained again after a resume; the later values are kept "
                f"({len({conflict.tag for conflict in again})} tags differ)",
                where=Where(file=lineage.kept[-1].name, step=steps[0]),
            )
        )
    return findings


def _key(conflict: Conflict) -> tuple[str, int, str, str]:
    return conflict.tag, conflict.step, repr(conflict.other), conflict.source


def replaced(lineage: Lineage) -> list[tuple[str, str]]:
    """The runs that a lineage leaves out, each with why."""
    return [
        (run.name, f"{run.steps}: an earlier attempt, replaced by {lineage.kept[-1].name}")
        for run in lineage.replaced
    ]


def other_attempt(name: str, why: str) -> Finding:
    """The finding that names a run or file that was left out."""
    return Finding(
        id="capture.metrics.other-attempt",
        severity=Severity.NOTICE,
        what=f"left out: {why}",
        where=Where(file=name),
    )
