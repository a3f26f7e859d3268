"""What is known of a step from its judged attempts and from what the journal says without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict

Reasons = dict[str, tuple[Verdict, str]]


def known(step: Step, attempts: Iterable[AttemptResult], reasons: Reasons) -> StepResult:
    """The step as it stands."""
    judged, reason = tuple(attempts), ""
    if step.id in reasons:
        verdict, reason = reasons[step.id]
    elif judged:
        verdict = judged[-1].verdict
    elif step.skip_reason:
        verdict, reason = Verdict.SKIPPED, step.skip_reason
    else:
        verdict, reason = Verdict.INCOMPLETE, "not run to its end"
    return StepResult(id=step.id, coverage=step.coverage, verdict=verdict, reason=reason, attempts=judged)


def reasons_of(events: Iterable[dict[str, Any]]) -> Reasons:
    """Verdicts given without an attempt, by step id; the last one counts, until an attempt follows it."""
    reasons: Reasons = {}
    for event in events:
        if event["event"] == "step_settled":
            reasons[str(event["step"])] = (Verdict(event["verdict"]), str(event["reason"]))
        elif event["event"] == "attempt_started":
            reasons.pop(str(event["step"]), None)
    return reasons
