"""What may be said of a step: derived from its attempts, never more than they show."""

from __future__ import annotations

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Boundary, Finding, Severity
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict

NO_EVIDENCE_AGAINST_CHANGE = "this is no evidence against the change"


def claim(step: Step, result: StepResult) -> str:
    """One clause on a step: what was validated, or why nothing was."""
    last = result.attempts[-1] if result.attempts else None
    match result.verdict:
        case Verdict.PASS if last is not None:
            return f"{step.coverage}: {step.claim}{_steps_done(step, last)}"
        case Verdict.FAIL if last is not None:
            return f"{step.coverage}: {_first_reason(last)}"
        case Verdict.BLOCKED:
            reason = result.reason or (_blocked_by(last) if last else "")
            return f"{step.coverage}: stopped by the environment ({reason}); {NO_EVIDENCE_AGAINST_CHANGE}"
        case Verdict.INCOMPLETE:
            return f"{step.coverage}: {_unfinished(last) if last else result.reason}"
        case _:
            return f"{step.coverage}: {result.reason}"


def deciding(result: AttemptResult) -> tuple[Finding, ...]:
    """The findings that decide an attempt's verdict."""
    return tuple(finding for finding in result.findings if finding.severity is Severity.ERROR)


def _steps_done(step: Step, last: AttemptResult) -> str:
    if step.planned_steps is None or last.last_step is None:
        return ""
    return f" ({last.last_step} of {step.planned_steps} training steps)"


def _first_reason(last: AttemptResult) -> str:
    reasons = deciding(last)
    if last.triage is not None and last.triage.cause is not None:
        said, where = last.triage.cause.text.strip(), last.triage.cause.where
        if last.triage.boundary is Boundary.NUMERICS and reasons and reasons[0].boundary is Boundary.NUMERICS:
            said = reasons[0].what  # names the series and the step; the line is one of all series
        return f"{last.triage.boundary.value}: {said} ({where})"
    return reasons[0].what if reasons else str(last.exit)


def _blocked_by(last: AttemptResult) -> str:
    if last.triage is not None and last.triage.cause is not None:
        return f"{last.triage.cause.text.strip()}, {last.triage.cause.where}"
    return _first_reason(last)


def _unfinished(last: AttemptResult) -> str:
    return f"not run to its end ({last.exit})"
