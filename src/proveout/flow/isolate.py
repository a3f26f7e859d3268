"""Re-runs of one failed step up its isolation ladder, until one flips the outcome or the budget is spent.

The re-runs live beside the attempts, in ``isolation/``, with events of their own in the journal; the step's
and the run's verdict rest on the attempts alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from proveout.capture.config import read_config
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import AttemptResult, End, ExitRecord
from proveout.domain.files import read_json, write_json
from proveout.domain.isolation import Isolation, Outcome, Rerun, Tried
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.attempt import conclude, follow, start
from proveout.flow.evidence import related_to
from proveout.flow.isolation_case import CONTROL, Case, deciding, planned, used
from proveout.flow.isolation_state import bring_state
from proveout.flow.isolation_verify import rejected
from proveout.flow.observer import Observer
from proveout.flow.provenance import imports_of
from proveout.launch import Job, Launch
from proveout.store.runs import Run
from proveout.triage.ladders import Rung
from proveout.triage.rungs import Applied, effect

_OTHER_CODE = "judge.provenance"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How many re-runs, and how many minutes of them, at most."""

    runs: int = 12
    minutes: float = 120.0


def isolate(run: Run, case: Case, launch: Launch, budget: Budget, observer: Observer) -> Isolation:
    """Climb the ladder; the outcome is added to isolation.json of the run and returned.

    Raises:
        BlockedError: another process drives the run.
    """
    with run.held():
        began = time.time()
        outcome, tried = Outcome.NOT_ISOLATED, []
        climbing = _Climb(run, case, launch, budget, observer)
        try:
            for found in climbing.rungs():
                tried.append(found)
        except KeyboardInterrupt:
            outcome = Outcome.INTERRUPTED
            tried += climbing.cut_off()
        result = _concluded(case, tried, climbing.spent, outcome, began)
        run.journal.append("isolation_finished", step=case.step.id, outcome=result.outcome, rung=result.rung)
        write_json(run.layout.isolation, (*isolations(run), result))
        return result


def isolations(run: Run) -> tuple[Isolation, ...]:
    """What earlier isolations of this run found, oldest first."""
    if not run.layout.isolation.exists():
        return ()
    return read_json(run.layout.isolation, tuple[Isolation, ...])


class _Climb:
    """One pass up the ladder."""

    def __init__(self, run: Run, case: Case, launch: Launch, budget: Budget, observer: Observer) -> None:
        self._run, self._case, self._launch = run, case, launch
        self._budget, self._observer = budget, observer
        self._deadline = time.monotonic() + budget.minutes * 60
        self.spent = False
        self._going: Tried | None = None

    def cut_off(self) -> list[Tried]:
        """The rung that was running when the climb was interrupted, if one was."""
        going = self._going
        return [msgspec.structs.replace(going, rerun=Rerun.UNFINISHED, reason="interrupted")] if going else []

    def rungs(self) -> Iterator[Tried]:
        """Each rung as it turns out; the last one is that which decides, or the one that the budget ended."""
        done = 0
        for rung, applied in self._case.rungs:
            if applied.step is None:
                yield planned(self._run, 0, rung, applied)
                continue
            left = (self._deadline - time.monotonic()) / 60
            if done >= self._budget.runs or left <= 0:
                self.spent = True
                return
            if why := rejected(self._run, self._case.step, applied.step):
                refused = planned(self._run, 0, rung, Applied(reason=why))
                yield msgspec.structs.replace(refused, rerun=Rerun.BLOCKED)
                continue
            done += 1
            found = self._rerun(rung, applied, applied.step, left)
            self._going = None
            yield found
            if found.rerun is Rerun.FLIPPED:
                return

    def _rerun(self, rung: Rung, applied: Applied, step: Step, minutes: float) -> Tried:
        number = used(self._run) + 1
        self._going = ready = planned(self._run, number, rung, applied)
        files = self._run.layout.rerun(number, step, rung.id)
        shorter = min(step.resources.timeout_minutes, minutes)
        step = msgspec.structs.replace(
            step, resources=msgspec.structs.replace(step.resources, timeout_minutes=shorter)
        )
        self._run.journal.append(
            "isolation_started", number=number, step=step.id, rung=rung.id, directory=files.root.name
        )
        try:
            bring_state(self._run, step)
            job = start(step, files, self._launch)
        except (BlockedError, OSError) as error:
            return msgspec.structs.replace(ready, rerun=Rerun.UNFINISHED, reason=str(error))
        self._observer.started(step, number, files)
        ended = self._watch(step, job, files)
        steps = {other.id: other for other in self._run.plan.steps}
        related = related_to(step, self._run, steps)
        result = conclude(step, number, files, ended, related, imports=imports_of(self._run, step))
        self._run.journal.append("isolation_judged", number=number, rung=rung.id, verdict=result.verdict)
        rerun, reason = _compared(self._case, applied, step, files, result)
        return msgspec.structs.replace(ready, rerun=rerun, reason=reason, verdict=result.verdict)

    def _watch(self, step: Step, job: Job, files: AttemptLayout) -> ExitRecord:
        try:
            return follow(step, job, files, self._observer)
        except KeyboardInterrupt:
            job.cancel()
            raise


def _compared(
    case: Case, applied: Applied, step: Step, files: AttemptLayout, result: AttemptResult
) -> tuple[Rerun, str]:
    """What a re-run shows beside the failed attempt. Only a Pass by the step's own criteria flips it."""
    if result.verdict is Verdict.INCOMPLETE or result.exit.end in (End.TIMED_OUT, End.NOT_STARTED):
        hung = case.attempt.exit.end is End.TIMED_OUT and step.resources == case.step.resources
        return (Rerun.SAME if hung else Rerun.UNFINISHED), str(result.exit)
    config, _ = read_config(step.config, files.root)
    if config is not None and (missing := effect(applied.values, config)):
        return Rerun.NO_EFFECT, missing
    if result.verdict is Verdict.PASS:
        return (
            (Rerun.NO_EFFECT, missing) if (missing := effect(applied.values, config)) else (Rerun.FLIPPED, "")
        )
    ours, theirs = deciding(result), case.failure.findings
    if set(ours) == set(theirs):
        return Rerun.SAME, ", ".join(ours)
    if result.verdict is Verdict.BLOCKED or any(name.startswith(_OTHER_CODE) for name in ours):
        return Rerun.BLOCKED, ", ".join(ours) or result.verdict.value
    return Rerun.OTHER, ", ".join(ours) or result.verdict.value


def _concluded(case: Case, tried: list[Tried], spent: bool, outcome: Outcome, began: float) -> Isolation:
    rungs = {rung.id: rung for rung, _ in case.rungs}
    last = tried[-1] if tried else None
    flipped = rungs[last.rung] if last is not None and last.rerun is Rerun.FLIPPED else None
    run_at_all = [item for item in tried if item.directory and item.rung != CONTROL.id]
    if flipped is not None:
        outcome = Outcome.NOT_REPEATABLE if flipped is CONTROL else Outcome.ISOLATED
    elif outcome is not Outcome.INTERRUPTED:
        if spent:
            outcome = Outcome.BUDGET_SPENT
        elif any(item.rerun in (Rerun.UNFINISHED, Rerun.BLOCKED) for item in tried):
            outcome = Outcome.UNDECIDED
        elif not run_at_all:
            outcome = Outcome.NOTHING_TO_TRY
    return Isolation(
        step=case.step.id,
        attempt=case.attempt.directory,
        verdict=case.attempt.verdict,
        boundary=case.failure.boundary,
        subkind=case.failure.subkind,
        stage=case.failure.stage,
        ladders=case.ladders,
        outcome=outcome,
        summary=_summary(case, outcome, flipped, len(run_at_all)),
        rung=flipped.id if flipped is not None and flipped is not CONTROL else "",
        proves=flipped.proves if flipped is not None else "",
        does_not_prove=flipped.does_not_prove if flipped is not None else "",
        limitation=flipped.limitation if flipped is not None else "",
        tried=tuple(tried),
        started=began,
        finished=time.time(),
    )


def _summary(case: Case, outcome: Outcome, flipped: Rung | None, runs: int) -> str:
    stays = f"{case.step.id} stays {case.attempt.verdict.value}"
    count = f"{runs} changed re-run{'s' * (runs != 1)}"
    said = {
        Outcome.ISOLATED: f"passes with {flipped.title if flipped else ''}",
        Outcome.NOT_REPEATABLE: "passes unchanged, so its failure does not repeat and nothing was isolated",
        Outcome.NOT_ISOLATED: f"{count} failed too: not isolated",
        Outcome.UNDECIDED: f"{count}, and not every rung could be run to its end: not isolated",
        Outcome.BUDGET_SPENT: f"not isolated: the budget ended after {count}, before the ladder did",
        Outcome.NOTHING_TO_TRY: "no rung of the ladder changes anything here: not isolated",
        Outcome.INTERRUPTED: f"interrupted after {count}: not isolated",
    }
    return f"{case.step.id}: {said[outcome]}; {stays}"
