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
from proveout.flow.observer import Observer
from proveout.flow.settle import settle
from proveout.judge import judge
from proveout.launch import Job, Launch, launch_record

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


def follow(step: Step, job: Job, files: AttemptLayout, observer: Observer) -> ExitRecord:
    """Wait for the job to end and tell its progress meanwhile."""
    keeper = Keeper(step, files)
    follower = LogFollower(files.log, loops.get(step.coverage.loop).progress)
    while (ended := job.poll()) is None:
        observer.progress(step, follower.read())
        keeper.look()
        time.sleep(POLL_SECONDS)
    keeper.finish()
    observer.progress(step, follower.read())
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
    result = AttemptResult(
        number=number,
        directory=files.root.name,
        verdict=settle(ended, judgement, triage),
        exit=ended,
        findings=judgement.findings,
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
