"""The failed attempt that is to be isolated, and its ladder with the exact command of every rung."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from proveout.capture.config import read_config
from proveout.domain import redact
from proveout.domain.errors import UsageError, nearest
from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Boundary
from proveout.domain.isolation import Rerun, Tried
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.execute import step_results
from proveout.store.runs import Run
from proveout.triage.ladders import Failure, Rung, load
from proveout.triage.rungs import Applied, apply, distinct

CONTROL = Rung(
    id="unchanged",
    title="the same command once more, unchanged",
    proves="the failure does not repeat, so a later run that passes would tell nothing of what was changed",
    does_not_prove="that the failure is gone",
    loops={},
)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The failed attempt that is to be isolated, and its ladder: rungs with the step that each would run."""

    step: Step
    attempt: AttemptResult
    failure: Failure
    ladders: tuple[str, ...]
    rungs: tuple[tuple[Rung, Applied], ...]


def case_of(run: Run, step_id: str = "", *, control: bool = True) -> Case:
    """The first step of the run whose last attempt failed, or the one that is named.

    Raises:
        UsageError: there is no such step, or it has no failed attempt.
    """
    plan = run.plan
    results = {result.id: result for result in step_results(plan, run)}
    steps = {step.id: step for step in plan.steps}
    if step_id and step_id not in steps:
        raise UsageError(f"no step {step_id!r}{nearest(step_id, steps)}", remedy=f"steps: {', '.join(steps)}")
    failed = [
        step
        for step in plan.steps
        if step_id in ("", step.id)
        and results[step.id].attempts
        and results[step.id].attempts[-1].verdict is not Verdict.PASS
    ]
    if not failed:
        what = f"step {step_id}" if step_id else "no step of this run"
        raise UsageError(
            f"{what} has {'no' if step_id else 'a'} failed attempt, so there is nothing to isolate",
            where=run.layout.id,
            remedy="'proveout report' shows the verdicts; a step that never started is for 'proveout doctor'",
        )
    step, attempt = failed[0], results[failed[0].id].attempts[-1]
    failure = _failure(step, attempt)
    config, _ = read_config(step.config, run.layout.attempts / attempt.directory)
    rungs = [
        (rung, apply(rung.loops[failure.loop], step, config, failure.findings))
        for rung in load().climb(failure)
    ]
    if control:
        rungs.insert(0, (CONTROL, Applied(step=step)))
    names = tuple(ladder.id for ladder in load().fitting(failure))
    return Case(step=step, attempt=attempt, failure=failure, ladders=names, rungs=distinct(rungs))


def preview(run: Run, case: Case) -> tuple[Tried, ...]:
    """The ladder with the exact command of every rung; nothing is run."""
    number = used(run)
    found = []
    for rung, applied in case.rungs:
        number += applied.step is not None
        found.append(planned(run, number, rung, applied))
    return tuple(found)


def _failure(step: Step, attempt: AttemptResult) -> Failure:
    triage = attempt.triage
    return Failure(
        loop=step.coverage.loop,
        boundary=triage.boundary if triage is not None else Boundary.UNKNOWN,
        subkind=triage.subkind if triage is not None else "",
        stage=triage.stage if triage is not None else "",
        findings=deciding(attempt),
        metrics=tuple(dict.fromkeys(_metrics(attempt))),
    )


def _metrics(attempt: AttemptResult) -> Iterator[str]:
    for finding in attempt.findings:
        if finding.decides:
            places = (finding.where, *(cited.where for cited in finding.evidence))
            yield from (where.metric for where in places if where.metric)


def deciding(attempt: AttemptResult) -> tuple[str, ...]:
    """The ids of the findings that decided an attempt."""
    return tuple(dict.fromkeys(finding.id for finding in attempt.findings if finding.decides))


def used(run: Run) -> int:
    """How many re-runs of this run were started so far."""
    return sum(event["event"] == "isolation_started" for event in run.journal.read())


def planned(run: Run, number: int, rung: Rung, applied: Applied) -> Tried:
    """A rung that is about to be run as re-run ``number``, or that is skipped."""
    if applied.step is None:
        return Tried(rung=rung.id, title=rung.title, rerun=Rerun.SKIPPED, reason=applied.reason)
    files = run.layout.rerun(number, applied.step, rung.id)
    command = applied.step.command.at(str(files.root))
    env = [f"{name}={value}" for name, value in redact.environment(command.env).items()]
    unset = [word for name in command.unset for word in ("-u", name)]
    before = ["env", *unset, *env] if env or unset else []
    return Tried(
        rung=rung.id,
        title=rung.title,
        rerun=Rerun.PLANNED,
        command=redact.text(shlex.join([*before, *command.argv])),
        directory=f"{run.layout.reruns.name}/{files.root.name}",
    )
