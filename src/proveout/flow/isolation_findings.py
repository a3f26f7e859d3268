"""What isolation found, as the report tells it: a notice, which decides nothing."""

from __future__ import annotations

from proveout.domain.errors import UsageError
from proveout.domain.files import read_json
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.isolation import Isolation
from proveout.store.runs import Run


def isolation_findings(run: Run) -> tuple[Finding, ...]:
    """One notice for each isolation of the run; a damaged isolation.json is a warning."""
    file = run.layout.isolation
    if not file.exists():
        return ()
    try:
        found = read_json(file, tuple[Isolation, ...])
    except UsageError as error:
        return (Finding(id="flow.isolation.unreadable", severity=Severity.WARNING, what=str(error)),)
    return tuple(_notice(isolation, file.name) for isolation in found)


def isolation_evidence(run: Run) -> tuple[Citation, ...]:
    """One line of evidence for each isolation of the run."""
    return tuple(
        Citation(what="Isolation", where=found.where, text=found.what.removeprefix("isolation: "))
        for found in isolation_findings(run)
        if found.severity is Severity.NOTICE
    )


def _notice(isolation: Isolation, file: str) -> Finding:
    parts = [f"isolation: {isolation.summary}"]
    parts += [f"it proves that {isolation.proves}"] if isolation.proves else []
    parts += [f"it does not prove {isolation.does_not_prove}"] if isolation.does_not_prove else []
    parts += [isolation.limitation] if isolation.limitation else []
    return Finding(
        id=f"flow.isolation.{isolation.outcome.value.replace(' ', '-')}",
        severity=Severity.NOTICE,
        what=". ".join(parts),
        where=Where(file=file),
        boundary=isolation.boundary,
        evidence=tuple(
            Citation(
                what=f"{tried.title}: {tried.rerun.value}", where=Where(file=f"{tried.directory}/run.log")
            )
            for tried in isolation.tried
            if tried.directory
        ),
    )
