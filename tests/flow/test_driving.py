"""Runs that go on without their terminal, are followed and cancelled from elsewhere, and are judged whoever dies."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from tests.conftest import Answer
from tests.flow.made_runs import a_step, make_run

from proveout import launch
from proveout.domain.evidence import AttemptResult, End
from proveout.domain.files import read_json, write_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Step
from proveout.domain.verdict import Verdict
from proveout.flow import cancelling, driving
from proveout.flow.driving import Driver, Pulse, driver_of
from proveout.flow.watching import Watcher
from proveout.store.runs import Run

SLEEPER = (
    "import pathlib, subprocess, sys, time\n"
    "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
    "child = subprocess.Popen(sleep, start_new_session=True)\n"
    "pathlib.Path('pid.new').write_text(str(child.pid)); pathlib.Path('pid.new').rename('pid')\n"
    "time.sleep(600)\n"
)
PATIENCE_SECONDS = 180.0


def sleeping_step() -> Step:
    """A step whose command starts a child in a session of its own and sleeps."""
    return msgspec.structs.replace(a_step(), command=Command(argv=(sys.executable, "-c", SLEEPER)))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / ".proveout" / "runs", finished=False, step=sleeping_step())


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def drive(run: Run) -> subprocess.Popen[bytes]:
    """Another proveout that drives the run."""
    return subprocess.Popen(
        [sys.executable, "-m", "proveout", "resume", str(run.layout.root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def attempt(run: Run) -> AttemptLayout:
    ((_, _, files),) = run.attempts()
    return files


def child_of(run: Run) -> int:
    """The process that the running attempt started, once it has."""
    until(lambda: run.attempts() and (attempt(run).root / "pid").exists())
    return int((attempt(run).root / "pid").read_text())


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def driven(run: Run) -> Iterator[tuple[Run, subprocess.Popen[bytes], int]]:
    """A run, its driver, and a grandchild of its attempt."""
    driver = drive(run)
    yield run, driver, child_of(run)
    driver.kill()
    driver.wait()
    launch.launch_for().cancel(
        [job for job in [launch.launch_for().reattach(attempt(run))] if hasattr(job, "poll")]
    )


def test_cancel_stops_everything_and_leaves_the_run_judged(
    driven: tuple[Run, subprocess.Popen[bytes], int], proveout: Callable[..., Answer]
) -> None:
    run, driver, child = driven
    began = time.monotonic()
    answer = proveout("cancel", str(run.layout.root), "--json")
    assert time.monotonic() - began < 10
    assert (answer.status, answer.json["result"]) == (4, "Incomplete")
    assert gone(child)
    assert driver.wait(timeout=5) == 4
    result = read_json(attempt(run).result, AttemptResult)
    assert (result.verdict, result.exit.end) == (Verdict.INCOMPLETE, End.INTERRUPTED)
    assert run.journal.read()[-1]["event"] == "interrupted"
    assert not run.layout.cancel.exists() and not run.layout.driver.exists()


def test_cancel_stops_what_a_killed_driver_left(
    driven: tuple[Run, subprocess.Popen[bytes], int], proveout: Callable[..., Answer]
) -> None:
    run, driver, child = driven
    driver.kill()
    driver.wait()
    answer = proveout("cancel", str(run.layout.root), "--json")
    assert (answer.status, answer.json["result"]) == (4, "Incomplete")
    assert gone(child)
    assert read_json(attempt(run).result, AttemptResult).exit.end is End.INTERRUPTED


def test_cancel_takes_over_from_a_driver_that_hangs(
    driven: tuple[Run, subprocess.Popen[bytes], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, driver, child = driven
    monkeypatch.setattr(cancelling, "PATIENCE_SECONDS", 0.3)
    driver.send_signal(signal.SIGSTOP)
    report = cancelling.cancel(run, launch.launch_for())
    assert report.result is Verdict.INCOMPLETE
    assert gone(child)
    assert driver.wait() == -signal.SIGKILL


def test_a_cancelled_run_can_be_resumed_and_an_old_request_does_not_stop_it(
    run: Run, proveout: Callable[..., Answer]
) -> None:
    write_json(run.layout.cancel, {})
    driver = drive(run)
    child = child_of(run)
    until(lambda: driver_of(run))
    assert not run.layout.cancel.exists()
    assert not gone(child)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=20) == 4
    assert gone(child)


def test_cancel_leaves_a_finished_run_as_it_is(tmp_path: Path, proveout: Callable[..., Answer]) -> None:
    run = make_run(tmp_path / ".proveout" / "runs", Verdict.PASS)
    before = run.layout.journal.read_bytes()
    assert proveout("cancel", "--json").json["result"] == "Pass"
    assert run.layout.journal.read_bytes() == before


def test_a_driver_of_another_machine_is_alive_while_it_goes_on_saying_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, silent = [0.0], driving.SILENT_BEATS * driving.BEAT_SECONDS
    monkeypatch.setattr(driving.time, "monotonic", lambda: now[0])
    pulse = Pulse(run)
    for beat in (1, 2, 3):
        write_json(run.layout.driver, Driver(pid=1, host="elsewhere", beat=beat))
        now[0] += silent - 1
        assert pulse.beats()
    now[0] += silent + 1
    assert not pulse.beats()


def test_a_run_that_another_machine_drives_is_not_taken_for_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proveout.flow.watching.ALIVE_EVERY_SECONDS", 0.0)
    assert Watcher(run).look().ended
    write_json(run.layout.driver, Driver(pid=1, host="elsewhere", beat=1))
    assert not Watcher(run).look().ended


@pytest.mark.real
def test_a_detached_run_outlives_its_terminal_and_is_watched_to_its_end(
    tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    terminal, inner = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "proveout", "run", "--level", "bench:0", "--detach"],
        cwd=tmp_path,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    )
    os.close(inner)
    said = b""
    while started.poll() is None or b"cancel" not in said:
        try:
            said += os.read(terminal, 4096)
        except OSError:
            started.wait()
            break
    assert started.returncode == 0
    os.close(terminal)
    (root,) = (tmp_path / ".proveout" / "runs").iterdir()
    assert f"run {root.name} goes on in the background".encode() in said
    watched = proveout("watch", root.name)
    assert watched.status == 0
    assert watched.out.splitlines()[-1].startswith("Result: Pass")
    process = int(said.split(b"(process ")[1].split(b")")[0])
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait(60)
    assert "Result: Pass" in (root / "driver.log").read_text()


def test_a_background_process_that_ends_at_once_is_blocked(run: Run, proveout: Callable[..., Answer]) -> None:
    with run.held():
        answer = proveout("resume", str(run.layout.root), "--detach")
    assert answer.status == 3
    assert "the background process ended at once" in answer.err
    assert "another proveout drives this run" in run.layout.driver_log.read_text()
