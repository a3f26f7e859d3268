"""Run directories as a run leaves them, without the training: plan, journal, attempts with metrics and result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from proveout.domain.checkout import Checkout
from proveout.domain.evidence import AttemptResult, End, ExitRecord, TriageResult
from proveout.domain.files import write_json
from proveout.domain.finding import Boundary, Finding, Severity
from proveout.domain.step import Command, Coverage, Plan, Source, Step
from proveout.domain.verdict import Verdict
from proveout.store.runs import Run, create

METRICS = {"train/reward": (0.2, 0.4, 0.6), "timing/train/total_step_time": (2.0, 2.0, 2.0)}


def a_step(
    *words: str, loop: str = "bench", level: int = 0, variant: str = "grpo", metrics: tuple[Source, ...] = ()
) -> Step:
    return Step(
        id=f"{loop}-L{level}-{variant}",
        coverage=Coverage(loop=loop, level=level, variant=variant),
        deliverable="smoke",
        claim="updates completed",
        command=Command(argv=("python", "-m", "loop", *words)),
        planned_steps=3,
        metrics=metrics,
        config=Source(format="json", path="config.json"),
    )


def a_result(
    number: int,
    directory: str,
    verdict: Verdict,
    *,
    started: float = 100.0,
    seconds: float = 8.0,
    cause: str = "",
) -> AttemptResult:
    bad = verdict is Verdict.FAIL
    blocked = verdict is Verdict.BLOCKED
    return AttemptResult(
        number=number,
        directory=directory,
        verdict=verdict,
        exit=ExitRecord(end=End.EXITED, code=int(bad), started=started, finished=started + seconds),
        findings=(Finding(id=cause or "judge.finite.nan", severity=Severity.ERROR, what="loss is NaN"),)
        if bad
        else (),
        last_step=3,
        triage=TriageResult(boundary=Boundary.ENVIRONMENT, verdict=verdict, remedy="free a GPU")
        if blocked
        else None,
    )


def make_run(
    root: Path,
    *verdicts: Verdict,
    step: Step | None = None,
    metrics: Mapping[str, Sequence[float]] = METRICS,
    checkouts: Sequence[Checkout] = (),
    model: str = "tiny",
    seconds: float = 8.0,
    cause: str = "",
    config: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    finished: bool = True,
) -> Run:
    """A run of one step, with one attempt for each verdict."""
    step = step or a_step()
    run = create(root, Plan(model=model, levels=(), steps=(step,)))
    if checkouts:
        write_json(run.layout.checkouts, tuple(checkouts))
    for number, verdict in enumerate(verdicts, 1):
        files = run.layout.attempt(number, step)
        files.root.mkdir()
        run.journal.append("attempt_started", number=number, step=step.id, directory=files.root.name)
        series = {tag: dict(enumerate(values, 1)) for tag, values in metrics.items()}
        files.metrics.write_text(json.dumps(series))
        files.config.write_text(json.dumps(config or {"lr": 0.001}))
        files.env.write_text(json.dumps(env or {"HF_HUB_OFFLINE": "1"}))
        write_json(files.result, a_result(number, files.root.name, verdict, seconds=seconds, cause=cause))
        run.journal.append("attempt_judged", number=number, step=step.id, verdict=verdict)
    if finished:
        run.journal.append("run_finished")
    return run
