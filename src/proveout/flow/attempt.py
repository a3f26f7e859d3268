"""One attempt of one step: started, followed, captured, judged, triaged and written down."""

from __future__ import annotations

import time
from pathlib import Path

from proveout import loops
from proveout.capture.metrics_json import write_metrics_json
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import (
    AttemptResult,
    CriterionResult,
    End,
    Evidence,
    ExitRecord,
    ImportRecord,
    Judgement,
    TriageResult,
)
from proveout.domain.files import write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.evidence import gather
from proveout.flow.follow import LogFollower
from proveout.flow.keep import Keeper
from proveout.flow.noise import residual_noise
from proveout.flow.observer import Observer
from proveout.flow.settle import explained, settle
from proveout.judge import judge
from proveout.launch import Job, Launch, launch_record
from proveout.triage.construction import Construction, construction

POLL_SECONDS = 0.25


def start(step: Step, files: AttemptLayout, launch: Launch) -> Job:
    """Make the attempt's directory and start its command there. Raises BlockedError where that fails."""
    make_directory(files)
    return launch.submit(step.command.at(str(files.root)), files, step.resources)


def make_directory(files: AttemptLayout) -> None:
    """Make an attempt's directory. Raises BlockedError where that fails."""
    try:
        files.root.mkdir(parents=True)
    except OSError as error:
        raise BlockedError(
            f"no attempt directory can be made: {error.strerror or error}", where=str(files.root)
        ) from error


class Following:
    """Looks at a running attempt: its progress, and what it may remove before its end."""

    def __init__(self, step: Step, job: Job, files: AttemptLayout) -> None:
        self._step, self._job, self._files = step, job, files
        self._keeper: Keeper | None = None
        self._follower = LogFollower(files.log, loops.get(step.coverage.loop).progress)

    def look(self, observer: Observer) -> ExitRecord | None:
        """How it ended, or None; its progress is told meanwhile, once its command runs."""
        ended = self._job.poll()
        if ended is not None:
            self.finish(observer)
        elif self._files.process.exists():
            observer.progress(self._step, self._follower.read())
            self._kept().look()
        return ended

    def finish(self, observer: Observer) -> None:
        """The last look."""
        self._kept().finish()
        observer.progress(self._step, self._follower.read())

    def _kept(self) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper(self._step, self._files)
        return self._keeper


def follow(step: Step, job: Job, files: AttemptLayout, observer: Observer) -> ExitRecord:
    """Wait for the job to end and tell its progress meanwhile."""
    following = Following(step, job, files)
    while (ended := following.look(observer)) is None:
        time.sleep(POLL_SECONDS)
    return ended


def conclude(
    step: Step,
    number: int,
    files: AttemptLayout,
    ended: ExitRecord,
    related: dict[str, Evidence],
    *,
    imports: tuple[ImportRecord, ...] = (),
) -> AttemptResult:
    """Judge what the attempt left; metrics.json and findings.json are written first, result.json last."""
    evidence = gather(step, number, files, ended, related, imports=imports)
    judgement = judge(evidence)
    triage = _triage(evidence) if judgement.verdict is not Verdict.PASS else None
    built = construction_of(evidence) if judgement.verdict is not Verdict.PASS else None
    verdict = settle(ended, judgement, triage, built)
    beside = explained(built, verdict, triage) if built is not None else ()
    if verdict is Verdict.PASS:
        beside = residual_noise(evidence)
    result = AttemptResult(
        number=number,
        directory=files.root.name,
        verdict=verdict,
        exit=ended,
        findings=(*judgement.findings, *beside),
        held=tuple(citation for part in _own_criteria_first(step, judgement) for citation in part.held),
        checks=tuple(row for part in judgement.results for row in part.checks),
        last_step=evidence.metrics.last_step(),
        triage=triage,
        launch=launch_record(files),
    )
    write_metrics_json(evidence.metrics, files.metrics)
    write_json(files.findings, result.findings)
    write_json(files.result, result)
    return result


def _own_criteria_first(step: Step, judgement: Judgement) -> list[CriterionResult]:
    own = {criterion.kind for criterion in step.criteria}
    return sorted(judgement.results, key=lambda result: result.kind not in own)


def construction_of(evidence: Evidence) -> Construction | None:
    """How far a training run came; None where the step does not train, or its log cannot be read."""
    if evidence.step.planned_steps is None or not Path(evidence.log).exists():
        return None
    return construction([Path(evidence.log)], evidence.metrics.last_step())


def _triage(evidence: Evidence) -> TriageResult | None:
    if evidence.exit.end in (End.INTERRUPTED, End.LOST):
        return None
    from proveout.triage import triage

    return triage(
        [Path(evidence.log), *map(Path, evidence.extra_logs)],
        exit=evidence.exit,
        metrics=evidence.metrics,
        planned_steps=evidence.step.planned_steps,
        loop=evidence.step.coverage.loop,
    )
