"""The verdict of a run over its requested levels, from a run directory alone."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.evidence import AttemptResult, End, ExitRecord
from proveout.domain.files import write_json
from proveout.domain.step import Command, Coverage, LevelRequest, Plan, Step
from proveout.domain.verdict import Verdict
from proveout.flow.reporting import build
from proveout.store.runs import Run, create


def finished(root: Path, *levels: int) -> Run:
    """A finished run whose only step, of level 0, passed; ``levels`` were requested."""
    step = Step(
        id="s",
        coverage=Coverage(loop="bench", level=0),
        deliverable="smoke",
        claim="updates completed",
        command=Command(argv=("true",)),
    )
    asked = tuple(
        LevelRequest(loop="bench", level=level, requested=True, reason="--level") for level in levels
    )
    run = create(root, Plan(model="m", levels=asked, steps=(step,)))
    run.journal.append("attempt_started", number=1, step="s", directory="01-bench-L0-default")
    files = run.layout.attempt(1, step)
    files.root.mkdir()
    ended = ExitRecord(end=End.EXITED, code=0, started=1.0, finished=2.0)
    result = AttemptResult(number=1, directory=files.root.name, verdict=Verdict.PASS, exit=ended)
    write_json(files.result, result)
    run.journal.append("run_finished")
    return run


def test_every_requested_level_passed_is_a_pass(tmp_path: Path) -> None:
    assert build(finished(tmp_path, 0)).result is Verdict.PASS


def test_a_requested_level_without_a_step_is_no_pass(tmp_path: Path) -> None:
    assert build(finished(tmp_path, 0, 5)).result is Verdict.BLOCKED


def test_a_run_that_did_not_say_it_finished_is_no_pass(tmp_path: Path) -> None:
    run = finished(tmp_path, 0)
    events = run.layout.journal.read_text().splitlines(keepends=True)
    run.layout.journal.write_text("".join(line for line in events if "run_finished" not in line))
    assert build(run).result is Verdict.INCOMPLETE
