"""One pass over the steps of a run: what is ready starts, what ended is judged, until nothing is left."""

from __future__ import annotations

from collections.abc import Sequence

from proveout.domain.errors import BlockedError
from proveout.domain.evidence import AttemptResult, End, ExitRecord, StepResult
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.attempt import Following, conclude, make_directory
from proveout.flow.evidence import related_to
from proveout.flow.known import known, reasons_of
from proveout.flow.observer import Observer
from proveout.flow.policy import Policy, Slots
from proveout.flow.provenance import imports_of, wrong_tree
from proveout.launch import Job, Start
from proveout.store.runs import Run

_DIED = (End.LOST, End.INTERRUPTED)


class _Running:
    """An attempt that goes on."""

    def __init__(self, step: Step, number: int, files: AttemptLayout, job: Job) -> None:
        self.step, self.number, self.files, self.job = step, number, files, job
        self.following = Following(step, job, files)


class Execution:
    """The steps of one run. ``go_on`` is called again and again; it never waits."""

    def __init__(self, run: Run, policy: Policy, observer: Observer, slots: Slots) -> None:
        self._run, self._policy, self._observer, self._slots = run, policy, observer, slots
        self._steps = {step.id: step for step in run.plan.steps}
        self._judged: dict[str, list[AttemptResult]] = run.results()
        self._reasons = reasons_of(run.journal.read())
        self._open = self._unjudged()
        self._number = len(run.attempts())
        self._left = list(self._steps.values())
        self._settled: dict[str, StepResult] = {}
        self._running: dict[str, _Running] = {}
        self._starting: list[AttemptLayout] = []
        self._stopping = self._finished = False

    @property
    def running(self) -> int:
        """Attempts that go on."""
        return len(self._running)

    def go_on(self) -> bool:
        """Judge what ended and start what can start; whether anything is left to do."""
        for running in list(self._running.values()):
            if (ended := running.following.look(self._observer)) is not None:
                self._ended(running, ended)
        self._start_what_is_ready()
        if self._running or (self._left and not self._stopping):
            return True
        if not self._finished:
            self._finished = True
            self._run.journal.append("run_finished")
        return False

    def stop(self) -> None:
        """Cancel every attempt, those included whose start was cut off, and write down what they left."""
        running = list(self._running.values())
        for files in self._starting:
            found = self._policy.launch.reattach(files)
            if not isinstance(found, ExitRecord):
                found.cancel()
        ended = self._policy.launch.cancel([each.job for each in running])
        for each, record in zip(running, ended, strict=True):
            each.following.finish(self._observer)
            self._conclude(each.step, each.number, each.files, record)
            self._slots.give(self._run, each.step)
        self._running.clear()

    def _start_what_is_ready(self) -> None:
        """Settle what needs no attempt, and start all that fits in one go; a step waits for those before it."""
        chosen: list[Step] = []
        for step in list(self._left):
            if self._stopping:
                break
            if any(need not in self._settled for need in step.needs):
                continue
            if not self._needs_attempt(step):
                continue
            if not self._slots.fits(step):
                break
            self._left.remove(step)
            self._slots.take(self._run, step)
            if not self._finish_earlier(step):
                chosen.append(step)
        if chosen:
            self._start(chosen)

    def _needs_attempt(self, step: Step) -> bool:
        """Whether the step is to be tried; where not, it is settled."""
        if step.skip_reason or self._known(step).verdict not in self._policy.again:
            self._settle(step)
            return False
        unmet = [need for need in step.needs if self._settled[need].verdict is not Verdict.PASS]
        reason = f"it needs {', '.join(unmet)}, which did not pass" if unmet else ""
        if reason := reason or wrong_tree(step, self._settled):
            self._settle(step, Verdict.SKIPPED, reason)
        elif reason := self._slots.too_large(step):
            self._settle(step, Verdict.BLOCKED, reason)
        return not reason

    def _finish_earlier(self, step: Step) -> bool:
        """Go on with the attempt that an earlier process began; False where it did not come to its own end."""
        for number, files in self._open.pop(step.id, []):
            files.root.mkdir(parents=True, exist_ok=True)
            found = self._policy.launch.reattach(files)
            if not isinstance(found, ExitRecord):
                self._follow(step, number, files, found)
                return True
            result = self._conclude(step, number, files, found)
            if found.end not in _DIED:
                self._observer.started(step, number, files)
                self._observer.judged(step, result)
                self._slots.give(self._run, step)
                self._settle(step)
                return True
        return False

    def _start(self, steps: Sequence[Step]) -> None:
        starts, numbers = [], []
        try:
            for step in steps:
                self._number += 1
                files = self._run.layout.attempt(self._number, step)
                self._run.journal.append(
                    "attempt_started", number=self._number, step=step.id, directory=files.root.name
                )
                self._reasons.pop(step.id, None)
                make_directory(files)
                self._starting.append(files)
                numbers.append(self._number)
                command = step.command.at(str(files.root))
                starts.append(Start(command=command, files=files, resources=step.resources))
            jobs = self._policy.launch.submit_many(starts)
        except BlockedError as error:
            self._starting.clear()
            for step in steps:
                self._slots.give(self._run, step)
                self._settle(step, Verdict.BLOCKED, str(error))
            return
        for step, number, start, job in zip(steps, numbers, starts, jobs, strict=True):
            self._follow(step, number, start.files, job)
        self._starting.clear()

    def _follow(self, step: Step, number: int, files: AttemptLayout, job: Job) -> None:
        if step in self._left:
            self._left.remove(step)
        self._running[step.id] = _Running(step, number, files, job)
        self._observer.started(step, number, files)

    def _ended(self, running: _Running, ended: ExitRecord) -> None:
        step = running.step
        result = self._conclude(step, running.number, running.files, ended)
        del self._running[step.id]
        self._slots.give(self._run, step)
        self._observer.judged(step, result)
        self._settle(step)

    def _conclude(self, step: Step, number: int, files: AttemptLayout, ended: ExitRecord) -> AttemptResult:
        related = related_to(step, self._run, self._steps) if step.needs else {}
        result = conclude(step, number, files, ended, related, imports=imports_of(self._run, step))
        self._run.journal.append("attempt_judged", number=number, step=step.id, verdict=result.verdict)
        self._judged.setdefault(step.id, []).append(result)
        return result

    def _settle(self, step: Step, verdict: Verdict | None = None, reason: str = "") -> None:
        """The step has its verdict, by its attempts or by this one."""
        if verdict is not None:
            self._run.journal.append("step_settled", step=step.id, verdict=verdict, reason=reason)
            self._reasons[step.id] = (verdict, reason)
        if step in self._left:
            self._left.remove(step)
        result = self._settled[step.id] = self._known(step)
        self._observer.settled(step, result)
        if result.verdict is not Verdict.PASS and not self._policy.keep_going:
            self._stopping = True

    def _known(self, step: Step) -> StepResult:
        return known(step, self._judged.get(step.id, ()), self._reasons)

    def _unjudged(self) -> dict[str, list[tuple[int, AttemptLayout]]]:
        found: dict[str, list[tuple[int, AttemptLayout]]] = {}
        for number, step_id, files in self._run.attempts():
            if not files.result.exists():
                found.setdefault(step_id, []).append((number, files))
        return found
