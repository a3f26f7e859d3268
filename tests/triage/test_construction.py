"""How far a log shows that a run came, with the line that shows it; and what a passed run left at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from proveout.domain.evidence import End, ExitRecord
from proveout.triage.construction import Reached, construction
from proveout.triage.residue import residue

RAY = "2026-11-29 14:45:12,606\tINFO worker.py:2012 -- Started a local Ray instance.\n"
SETTING = "\n> Setting up model and training...\n"
PARAMETERS = "(W pid=7)  > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 77568\n"
STEP = "========================= Step 1/1 =========================\nTraining policy...\n"
BAR = "\rTraining Progress:   0%|          | 0/1 [00:00<?, ?it/s]"
LEAK = "resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects\n"
OK = ExitRecord(end=End.EXITED, code=0)


@pytest.mark.parametrize(
    ("text", "reached", "line", "words"),
    [
        ("", Reached.UNKNOWN, None, ""),
        ("hello\n", Reached.UNKNOWN, None, ""),
        ("hello\n" + RAY, Reached.BEFORE, 2, "Started a local Ray instance"),
        (RAY + SETTING, Reached.BEGUN, 3, "> Setting up model and training..."),
        (RAY + SETTING + PARAMETERS, Reached.BUILT, 4, "number of parameters"),
        (RAY + SETTING + PARAMETERS + STEP, Reached.BUILT, 4, "number of parameters"),
        (RAY + STEP, Reached.BUILT, 3, "Training policy..."),
        (RAY + "x\n" * 200_000 + PARAMETERS, Reached.BUILT, 200_002, "number of parameters"),
        (RAY + "a\n" + BAR, Reached.BUILT, 3, "Training Progress:   0%|"),
    ],
)
def test_how_far_it_came(text: str, reached: Reached, line: int | None, words: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(text)
    found = construction([log])
    assert found.reached is reached
    if line is None:
        assert found.shown is None
    else:
        assert found.shown is not None and found.shown.where.line == line and words in found.shown.text


def test_recorded_training_shows_it_where_the_log_is_silent(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(RAY)
    found = construction([log], last_step=2)
    assert found.reached is Reached.BUILT and found.shown is not None and found.shown.where.step == 2
    assert construction([log], last_step=0).reached is Reached.BEFORE


def test_only_what_comes_after_the_last_step_is_residue(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(LEAK + STEP + "fine\n" + LEAK + LEAK)
    (found,) = residue(log, OK)
    assert found.where.line in (5, 6) and "leaked shared_memory" in found.text
    assert residue(log, ExitRecord(end=End.EXITED, code=1)) == ()
    log.write_text(LEAK + STEP)
    assert residue(log, OK) == ()
