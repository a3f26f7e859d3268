"""Runs the steps of a plan that are left, in order, and settles each of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proveout.domain.errors import BlockedError
from proveout.domain.evidence import AttemptResult, End, ExitRecord, StepResult
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Plan, Step
from proveout.domain.verdict import Verdict
from proveout.flow.attempt import conclude, follow, start
from proveout.flow.evidence import related_to
from proveout.flow.observer import Observer
from proveout.flow.provenance import imports_of, wrong_tree
from proveout.launch import Job, Launch
from proveout.store.runs import Run


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How a run goes on: after a step that did not pass, where attempts start, what is tried again."""

    launch: Launch
    keep_going: bool = True
    again: frozenset[Verdict] = frozenset({Verdict.INCOMPLETE})


def execute(run: Run, policy: Policy, observer: Observer) -> tuple[StepResult, ...]:
    """Run every step that has no final verdict yet.

    Ctrl-C stops the running attempt with its children, leaves the rest Incomplete and is raised again.
    """
    return _Execution(run, policy, observer).go_on()


def step_results(plan: Plan, run: Run) -> tuple[StepResult, ...]:
    """What is known of every step of the plan, run or not."""
    judged, reasons = run.results(), _reasons(run)
    return tuple(_known(step, judged.get(step.id, ()), reasons) for step in plan.steps)


class _Execution:
    """One pass over the steps of a run."""

    def __init__(self, run: Run, policy: Policy, observer: Observer) -> None:
        self._run, self._policy, self._observer = run, policy, observer
        self._steps = {step.id: step for step in run.plan.steps}

    def go_on(self) -> tuple[StepResult, ...]:
        settled: dict[str, StepResult] = {}
        for step in self._steps.values():
            settled[step.id] = self._settle(step, settled)
            self._observer.settled(step, settled[step.id])
            if settled[step.id].verdict is not Verdict.PASS and not self._policy.keep_going:
                break
        self._run.journal.append("run_finished")
        return step_results(self._run.plan, self._run)

    def _settle(self, step: Step, settled: dict[str, StepResult]) -> StepResult:
        known = self._what_is_known(step)
        if step.skip_reason or known.verdict not in self._policy.again:
            return known
        unmet = [need for need in step.needs if settled[need].verdict is not Verdict.PASS]
        if unmet:
            reason = f"it needs {', '.join(unmet)}, which did not pass"
            return self._settle_without_attempt(step, Verdict.SKIPPED, reason)
        if wrong := wrong_tree(step, settled):
            return self._settle_without_attempt(step, Verdict.SKIPPED, wrong)
        try:
            self._observer.judged(step, self._finish_earlier(step) or self._attempt(step))
        except BlockedError as error:
            return self._settle_without_attempt(step, Verdict.BLOCKED, str(error))
        return self._what_is_known(step)

    def _finish_earlier(self, step: Step) -> AttemptResult | None:
        """Judge the attempt that an earlier process began; None where it did not come to its own end."""
        for number, step_id, files in self._run.attempts():
            if step_id == step.id and not files.result.exists():
                files.root.mkdir(parents=True, exist_ok=True)
                found = self._policy.launch.reattach(files)
                ended = found if isinstance(found, ExitRecord) else self._watch(step, number, files, found)
                result = self._conclude(step, number, files, ended)
                if ended.end not in (End.LOST, End.INTERRUPTED):
                    return result
        return None

    def _attempt(self, step: Step) -> AttemptResult:
        number = len(self._run.attempts()) + 1
        files = self._run.layout.attempt(number, step)
        self._run.journal.append("attempt_started", number=number, step=step.id, directory=files.root.name)
        job = start(step, files, self._policy.launch)
        return self._conclude(step, number, files, self._watch(step, number, files, job))

    def _watch(self, step: Step, number: int, files: AttemptLayout, job: Job) -> ExitRecord:
        self._observer.started(step, number, files)
        try:
            return follow(step, job, files, self._observer)
        except KeyboardInterrupt:
            self._conclude(step, number, files, job.cancel())
            raise

    def _conclude(self, step: Step, number: int, files: AttemptLayout, ended: ExitRecord) -> AttemptResult:
        related = related_to(step, self._run, self._steps)
        result = conclude(step, number, files, ended, related, imports=imports_of(self._run, step))
        self._run.journal.append("attempt_judged", number=number, step=step.id, verdict=result.verdict)
        return result

    def _settle_without_attempt(self, step: Step, verdict: Verdict, reason: str) -> StepResult:
        self._run.journal.append("step_settled", step=step.id, verdict=verdict, reason=reason)
        return self._what_is_known(step)

    def _what_is_known(self, step: Step) -> StepResult:
        return _known(step, self._run.results().get(step.id, ()), _reasons(self._run))


def _known(
    step: Step, attempts: Iterable[AttemptResult], reasons: dict[str, tuple[Verdict, str]]
) -> StepResult:
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


def _reasons(run: Run) -> dict[str, tuple[Verdict, str]]:
    """Verdicts given without an attempt, by step id; the last one counts, until an attempt follows it."""
    reasons: dict[str, tuple[Verdict, str]] = {}
    for event in run.journal.read():
        if event["event"] == "step_settled":
            reasons[str(event["step"])] = (Verdict(event["verdict"]), str(event["reason"]))
        elif event["event"] == "attempt_started":
            reasons.pop(str(event["step"]), None)
    return reasons
