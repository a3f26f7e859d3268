"""Residual log noise of a step that passed: named, so that a reader who finds it need not wonder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proveout.domain.evidence import AttemptResult, Evidence
from proveout.domain.finding import Finding, Severity

ID = "flow.residual-noise"


def residual_noise(evidence: Evidence) -> tuple[Finding, ...]:
    """One notice for each kind of line after the end of a training run that passed."""
    if evidence.step.planned_steps is None:
        return ()
    from proveout.triage.residue import residue

    return tuple(
        Finding(id=ID, severity=Severity.NOTICE, what=cited.what, where=cited.where, evidence=(cited,))
        for cited in residue(Path(evidence.log), evidence.exit)
    )


def noise_limitations(coverage: str, attempt: AttemptResult) -> Iterable[str]:
    """One line that names all of it, with the lines of the log."""
    named = [
        f"{finding.what} (attempts/{attempt.directory}/{Path(finding.where.file or '').name}:{finding.where.line})"
        for finding in attempt.findings
        if finding.id == ID
    ]
    if named:
        yield f"{coverage}: residual log noise after the end: {'; '.join(named)}"
