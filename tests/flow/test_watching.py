"""What a watcher sees of a run, from its directory alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tests.capture.conftest import Maker
from tests.flow.made_runs import a_step, make_run

from proveout.cli import main
from proveout.cli.watch import draw
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Source
from proveout.domain.verdict import Verdict
from proveout.flow import watching
from proveout.flow.driving import driving
from proveout.flow.watching import Watcher
from proveout.store.runs import Run

DRIVER = """
import sys
from pathlib import Path
from proveout.domain.files import write_json
from proveout.domain.layout import RunLayout
from proveout.domain.verdict import Verdict
from proveout.store.runs import Run
from tests.flow.made_runs import a_result
run = Run(RunLayout(Path(sys.argv[1])))
with run.held():
    step = run.plan.steps[0]
    files = run.layout.attempt(1, step)
    files.root.mkdir()
    run.journal.append("attempt_started", number=1, step=step.id, directory=files.root.name)
    files.log.write_text("===== Step 2/3 =====\\nAvg Reward: 0.25\\n")
    print("training", flush=True)
    sys.stdin.readline()
    write_json(files.result, a_result(1, files.root.name, Verdict[sys.argv[2]]))
    run.journal.append("run_finished")
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Run]:
    """A run that a process drives."""
    run = make_run(tmp_path, finished=False, step=a_step(metrics=(Source(format="tensorboard", path="tb"),)))
    with run.held():
        yield run


def start(run: Run) -> AttemptLayout:
    files = run.layout.attempt(1, run.plan.steps[0])
    files.root.mkdir()
    run.journal.append("attempt_started", number=1, step="bench-L0-grpo", directory=files.root.name)
    return files


def test_a_training_attempt_shows_step_values_and_time_left(held: Run) -> None:
    watcher = Watcher(held)
    assert [step.state for step in watcher.look().steps] == ["waiting"]
    files = start(held)
    files.log.write_text("Setting up the model\n")
    view = watcher.look()
    assert (view.running, view.steps[0].state) == ("bench-L0-grpo", "running")
    assert view.progress is not None
    assert (view.progress.phase, view.eta) == ("setup", None)
    with files.log.open("a") as log:
        log.write(
            "===== Step 1/4 =====\nAvg Reward: 0.25\nLoss: 0.5\n===== Step 2/4 =====\nAvg Reward: 0.5\n"
        )
    view = watcher.look()
    assert view.progress is not None
    assert (view.progress.step, view.progress.total, view.progress.reward) == (2, 4, 0.5)
    assert view.eta == pytest.approx(view.progress.seconds)
    assert not view.ended


def test_event_files_give_whole_series_and_only_what_is_new_is_read(held: Run) -> None:
    files, maker, watcher = start(held), Maker(), Watcher(held)
    (files.root / "tb").mkdir()
    events = files.root / "tb" / "events.out.tfevents.1.x"
    events.write_bytes(
        maker.header() + maker.scalar("train/reward", 1, 0.25) + maker.scalar("train/loss", 1, 2.0)
    )
    watcher.look()
    with events.open("ab") as file:
        file.write(maker.scalar("train/reward", 2, 0.5) + maker.scalar("train/other", 2, 9.0))
    view = watcher.look()
    assert view.reward is not None
    assert view.loss is not None
    assert (view.reward.as_dict(), view.loss.as_dict()) == ({1: 0.25, 2: 0.5}, {1: 2.0})


def test_a_run_that_nobody_drives_any_more_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, finished=False)
    start(run)
    assert not Watcher(run).look().ended
    monkeypatch.setattr(watching, "ALIVE_EVERY_SECONDS", 0.0)
    view = Watcher(run).look()
    assert (view.ended, view.running) == (True, "")


def test_watching_never_takes_the_lock_of_a_run_that_has_just_said_something(held: Run) -> None:
    asked: list[int] = []

    class Spied(Run):
        @property
        def active(self) -> bool:
            asked.append(1)
            return True

    watcher = Watcher(Spied(held.layout))
    for _ in range(5):
        watcher.look()
    assert asked == []


def test_a_resumed_run_is_watched_again(held: Run) -> None:
    held.journal.append("run_finished")
    assert Watcher(held).look().ended
    start(held)
    assert Watcher(held).look().running == "bench-L0-grpo"


def test_steps_that_are_done_are_not_the_end_while_the_run_is_driven_on(held: Run) -> None:
    with driving([held]):
        held.journal.append("run_finished")
        assert not Watcher(held).look().ended
    assert Watcher(held).look().ended


def test_the_terminal_view_shows_sparklines_and_the_last_finding(held: Run) -> None:
    files = start(held)
    files.log.write_text("".join(f"===== Step {n}/9 =====\nAvg Reward: 0.{n}\n" for n in range(1, 5)))
    held.layout.preflight.write_text(
        '[{"id": "preflight.x", "severity": "warning", "what": "[red]little[/] disk"}]'
    )
    watcher = Watcher(held)
    watcher.look()
    console = Console(width=100, record=True)
    console.print(draw(watcher.look()))
    text = console.export_text()
    assert "training step 4 of 9" in text
    assert "reward" in text
    assert "last finding: warning: [red]little[/] disk" in text


@pytest.mark.parametrize(("verdict", "status"), [("PASS", 0), ("FAIL", 1)])
def test_from_another_process_until_the_end_with_its_exit_status(
    tmp_path: Path, verdict: str, status: int
) -> None:
    run = make_run(tmp_path / "runs", finished=False)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(run.layout.root), verdict], **pipes)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "training\n"
    command = [sys.executable, "-m", "proveout", "watch", run.layout.id, "--state-dir", str(tmp_path)]
    watcher = subprocess.Popen(command, **pipes)
    assert watcher.stdout is not None
    first = [watcher.stdout.readline() for _ in range(2)]
    assert first == ["bench level 0 (grpo): running\n", "bench-L0-grpo: step 2/3, reward 0.25\n"]
    driver.communicate("finish\n")
    rest, _ = watcher.communicate()
    assert rest.splitlines()[-1].startswith(f"Result: {Verdict[verdict]} - ")
    assert (driver.returncode, watcher.returncode) == (0, status)


def test_a_finished_run_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "runs", Verdict.FAIL)
    monkeypatch.chdir(tmp_path)
    assert main.run(["watch", "--state-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "error: loss is NaN",
        "Result: Fail - bench level 0 (grpo): loss is NaN",
    ]
    assert main.run(["watch", "--json", "--state-dir", str(tmp_path)]) == 1
    assert '"result":"Fail"' in capsys.readouterr().out.splitlines()[-1]
