"""What a run is doing now, from its directory alone; the run itself is not touched."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from proveout import loops
from proveout.capture.events.tail import TensorBoardTail
from proveout.capture.files import find
from proveout.domain.errors import ProveoutError
from proveout.domain.evidence import AttemptResult
from proveout.domain.files import read_json
from proveout.domain.finding import Finding, Severity
from proveout.domain.layout import AttemptLayout
from proveout.domain.metrics import Series
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.driving import Pulse, driver_of
from proveout.flow.follow import LogFollower
from proveout.flow.observer import ProgressState
from proveout.judge.roles import patterns
from proveout.store.runs import Run

ALIVE_EVERY_SECONDS = 10.0
_ENDS = frozenset({"run_finished", "interrupted"})


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """One step: its verdict, ``running`` or ``waiting``; and the seconds of its newest attempt."""

    step: str
    coverage: str
    state: str
    attempts: int = 0
    seconds: float | None = None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment.

    ``progress`` is that of the running attempt. ``eta`` is seconds until its last training step at its pace so far,
    None where it cannot be told. ``ended`` says that nothing will change any more.
    """

    run: str
    steps: tuple[StepView, ...]
    running: str = ""
    progress: ProgressState | None = None
    eta: float | None = None
    reward: Series | None = None
    loss: Series | None = None
    finding: str = ""
    ended: bool = False


class Watcher:
    """Looks at one run again and again; each look reads only what is new."""

    def __init__(self, run: Run) -> None:
        self._run, self._plan = run, run.plan
        self._follower: _Follower | None = None
        self._asked: float | None = None
        self._pulse = Pulse(run)

    def look(self) -> View:
        """The run as it is now. Raises UsageError where its plan cannot be read."""
        events = self._run.journal.read()
        results = self._run.results()
        attempts = [event for event in events if event["event"] == "attempt_started"]
        judged = {result.number for several in results.values() for result in several}
        open_one = next((event for event in reversed(attempts) if event["number"] not in judged), None)
        ended = self._ended(events)
        if ended:
            open_one = None
        follower = self._follow(open_one)
        progress = follower.read() if follower else None
        return View(
            run=self._run.layout.id,
            steps=tuple(self._step(step, events, results, open_one) for step in self._plan.steps),
            running=str(open_one["step"]) if open_one else "",
            progress=progress,
            eta=_eta(progress),
            reward=follower.series("reward") if follower else None,
            loss=follower.series("loss") if follower else None,
            finding=self._last_finding(results),
            ended=ended,
        )

    def _ended(self, events: list[dict[str, Any]]) -> bool:
        """Whether the journal says so and nobody goes on (with runs on another commit, say), or nobody drives the run.

        Whether a process drives it is asked for seldom: asking takes the run's lock for a moment.
        """
        if events and events[-1]["event"] in _ENDS:
            return driver_of(self._run) is None or not self._pulse.beats()
        if events and time.time() - float(events[-1]["time"]) < ALIVE_EVERY_SECONDS:
            return False
        now = time.monotonic()
        if self._asked is not None and now - self._asked < ALIVE_EVERY_SECONDS:
            return False
        self._asked = now
        return not self._pulse.beats()

    def _follow(self, open_one: dict[str, Any] | None) -> _Follower | None:
        if open_one is None:
            return None
        if self._follower is None or self._follower.number != open_one["number"]:
            step = next((step for step in self._plan.steps if step.id == open_one["step"]), None)
            files = AttemptLayout(self._run.layout.attempts / str(open_one["directory"]))
            self._follower = _Follower(step, files, open_one) if step is not None else None
        return self._follower

    def _step(
        self,
        step: Step,
        events: list[dict[str, Any]],
        results: dict[str, list[AttemptResult]],
        open_one: dict[str, Any] | None,
    ) -> StepView:
        mine = [event for event in events if event.get("step") == step.id]
        tried = [event for event in mine if event["event"] == "attempt_started"]
        state = "waiting"
        if open_one is not None and open_one["step"] == step.id:
            state = "running"
        elif mine and mine[-1]["event"] == "step_settled":
            state = str(mine[-1]["verdict"])
        elif results.get(step.id):
            state = results[step.id][-1].verdict.value
        elif step.skip_reason:
            state = Verdict.SKIPPED.value
        last = results[step.id][-1].exit if results.get(step.id) else None
        seconds = last.finished - last.started if last is not None and last.finished > last.started else None
        return StepView(
            step=step.id, coverage=str(step.coverage), state=state, attempts=len(tried), seconds=seconds
        )

    def _last_finding(self, results: dict[str, list[AttemptResult]]) -> str:
        judged = sorted((one for several in results.values() for one in several), key=lambda one: one.number)
        found: list[Finding] = [finding for one in judged for finding in one.findings]
        if not found and self._run.layout.preflight.exists():
            try:
                found = list(read_json(self._run.layout.preflight, tuple[Finding, ...]))
            except ProveoutError:
                found = []
        worth = [finding for finding in found if finding.severity is not Severity.NOTICE]
        return f"{worth[-1].severity}: {worth[-1].what}" if worth else ""


class _Follower:
    """The running attempt: its console, and its event files where it has some."""

    def __init__(self, step: Step, files: AttemptLayout, event: dict[str, Any]) -> None:
        self.number, self._started, self._files, self._step = (
            event["number"],
            float(event["time"]),
            files,
            step,
        )
        loop = step.coverage.loop
        self._log = LogFollower(files.log, loops.get(loop).progress)
        self._tails: dict[str, TensorBoardTail] = {}
        self._wanted = {role: patterns(role, loop) for role in ("reward", "loss")}
        self._points: dict[str, dict[str, dict[int, float]]] = {role: {} for role in self._wanted}
        self._console: dict[str, dict[int, float]] = {role: {} for role in self._wanted}

    def read(self) -> ProgressState:
        """How far it is, since its own start."""
        state = self._log.read()
        state.seconds = max(time.time() - self._started, 0.0)
        for role in self._console:
            value = getattr(state, role)
            if value is not None and state.step is not None:
                self._console[role][state.step] = value
        self._read_events()
        return state

    def series(self, role: str) -> Series | None:
        """The first series of the event files that plays a role, else what the console showed of it."""
        for pattern in self._wanted[role]:
            for tag, points in self._points[role].items():
                if points and fnmatchcase(tag, pattern):
                    return Series.of(points)
        return Series.of(self._console[role]) if self._console[role] else None

    def _read_events(self) -> None:
        for source in self._step.metrics:
            if source.format == "tensorboard":
                for path in find(self._files.root, source.path, "*tfevents*"):
                    tail = self._tails.setdefault(str(path), TensorBoardTail(path))
                    for tag, points in tail.read_new().points.items():
                        self._keep(tag, dict(zip(points.steps, points.values, strict=True)))

    def _keep(self, tag: str, points: dict[int, float]) -> None:
        for role, wanted in self._wanted.items():
            if any(fnmatchcase(tag, pattern) for pattern in wanted):
                self._points[role].setdefault(tag, {}).update(points)


def _eta(progress: ProgressState | None) -> float | None:
    if progress is None or not progress.step or not progress.total or progress.step > progress.total:
        return None
    return progress.seconds / progress.step * (progress.total - progress.step)
