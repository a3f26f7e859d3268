"""What attribution found, as the report tells it: a notice for each answer, which decides nothing."""

from __future__ import annotations

from proveout.domain.attribution import Answer, Attribution
from proveout.domain.errors import UsageError
from proveout.domain.evidence import StepResult
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.flow.against import attributions
from proveout.store.runs import Run

_REMEDY = {
    Answer.NEW: "look at what the change does there: the commit before it passes",
    Answer.PRE_EXISTING: "the failure was there before the change; mend the base first, then judge the change",
    Answer.FLAKY: "the failure comes and goes: fix seed and timing, or run it more often (--repeat)",
    Answer.ENVIRONMENT: "both sides are stopped by the environment: mend it, then 'proveout resume'",
    Answer.UNDECIDED: "see both logs",
}


def answered(run: Run, results: tuple[StepResult, ...]) -> tuple[Attribution, ...]:
    """The answers that belong to the last attempt of their step; none where the file cannot be read."""
    last = {result.id: result.attempts[-1].directory for result in results if result.attempts}
    try:
        found = attributions(run)
    except UsageError:
        return ()
    return tuple(each for each in found if last.get(each.step) == each.attempt)


def against_findings(run: Run, answers: tuple[Attribution, ...]) -> tuple[Finding, ...]:
    """One notice for each answer, with the logs of both sides."""
    return tuple(
        Finding(
            id=f"flow.against.{each.answer.value.replace(' ', '-')}",
            severity=Severity.NOTICE,
            what=each.summary,
            where=Where(file=run.layout.attributions.name),
            remedy=_REMEDY[each.answer],
            evidence=tuple(
                Citation(
                    what=f"{ran.side.value}: {ran.verdict.value}",
                    where=Where(file=f"{ran.directory}/run.log"),
                    text=ran.cause,
                )
                for ran in each.runs
            ),
        )
        for each in answers
    )


def told(answers: tuple[Attribution, ...], step: str) -> str:
    """What the summary adds to the claim of a step; '' where there is no answer."""
    return "".join(
        f" ({each.answer.value} against {each.role} {each.commit[:9]})"
        for each in answers
        if each.step == step
    )
