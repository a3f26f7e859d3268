"""Every pair of scheduler and launcher runs, stops and finds again a real command, and says truly how it ended."""

from __future__ import annotations

import contextlib
import signal
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.launch.engines import require, site_for

from proveout import launch
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import Job, Launch

PAIRS = launch.pairs()
THROUGH_A_SHELL = ("srun", "ray.sub")
"""A shell of a step that Slurm owns runs the command: what it says of signals and absent programs is all there is."""


@pytest.fixture(params=PAIRS, ids="+".join)
def starting(request: pytest.FixtureRequest) -> Launch:
    require(*request.param)
    return launch.launch_for(site_for(*request.param))


@pytest.fixture
def files(tmp_path: Path) -> AttemptLayout:
    root = tmp_path / "attempt"
    root.mkdir()
    return AttemptLayout(root)


def python(files: AttemptLayout, code: str, **env: str) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=str(files.root), env=env)


def wait(job: Job) -> ExitRecord:
    """Poll until there is a record."""
    while (record := job.poll()) is None:
        time.sleep(0.02)
    return record


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_for(path: Path) -> str:
    while not (path.exists() and path.read_text()):
        time.sleep(0.02)
    return path.read_text()


@pytest.mark.parametrize("code", [0, 1, 3, 137])
def test_exit_status_is_the_commands_own(starting: Launch, files: AttemptLayout, code: int) -> None:
    record = wait(starting.submit(python(files, f"raise SystemExit({code})"), files, Resources()))
    assert (record.end, record.code, record.ok) == (End.EXITED, code, code == 0)
    assert record.finished >= record.started > 0


def test_output_and_errors_land_in_the_log_in_order(starting: Launch, files: AttemptLayout) -> None:
    code = "import sys; print('to out', flush=True); print('to err', file=sys.stderr)"
    wait(starting.submit(python(files, code), files, Resources()))
    assert files.log.read_text().splitlines() == ["to out", "to err"]


def test_a_signal_is_told_from_an_exit_status(starting: Launch, files: AttemptLayout) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    record = wait(starting.submit(python(files, code), files, Resources()))
    if starting.launcher.name in THROUGH_A_SHELL:
        assert (record.end, record.code, record.ok) == (End.EXITED, 128 + signal.SIGKILL, False)
    else:
        assert (record.end, record.signal, record.ok) == (End.SIGNALLED, signal.SIGKILL, False)


def test_env_is_added_and_taken_away(
    starting: Launch, files: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOES", "1")
    code = "import os; print(os.environ.get('GOES'), os.environ.get('COMES'))"
    command = Command(
        argv=(sys.executable, "-c", code), cwd=str(files.root), env={"COMES": "2"}, unset=("GOES",)
    )
    wait(starting.submit(command, files, Resources()))
    assert files.log.read_text().split() == ["None", "2"]


def test_a_relative_search_path_means_the_same_to_the_command(
    starting: Launch, files: AttemptLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "found_here.py").write_text("print('found')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "lib")
    wait(starting.submit(python(files, "import found_here"), files, Resources()))
    assert files.log.read_text().split() == ["found"]


def test_secrets_of_the_environment_stand_in_no_file(
    starting: Launch, files: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "planted-secret-value")
    command = python(files, "pass", HF_TOKEN="hf_abcdefghijklmnopqrstuvwx")
    wait(starting.submit(command, files, Resources()))
    written = b"".join(path.read_bytes() for path in files.root.rglob("*") if path.is_file())
    assert b"planted-secret-value" not in written
    assert b"hf_abcdefghijklmnopqrstuvwx" not in written


def test_a_program_that_is_not_there_is_not_started(starting: Launch, files: AttemptLayout) -> None:
    command = Command(argv=("no-such-program",), cwd=str(files.root))
    record = wait(starting.submit(command, files, Resources()))
    if starting.launcher.name in THROUGH_A_SHELL:
        assert (record.end, record.code) == (End.EXITED, 127)
        assert "no-such-program" in files.log.read_text()
    else:
        assert record.end is End.NOT_STARTED
        assert "no-such-program" in record.detail


def test_a_time_limit_is_kept_and_named(starting: Launch, files: AttemptLayout) -> None:
    command = python(files, "import time; time.sleep(600)")
    record = wait(starting.submit(command, files, Resources(timeout_minutes=0.01)))
    assert (record.end, record.ok) == (End.TIMED_OUT, False)


def test_cancel_takes_all_children_with_it_even_those_of_another_session(
    starting: Launch, files: AttemptLayout
) -> None:
    code = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "pathlib.Path('pid.tmp').write_text(str(child.pid)); pathlib.Path('pid.tmp').rename('pid')\n"
        "time.sleep(600)\n"
    )
    job = starting.submit(python(files, code), files, Resources())
    child = int(wait_for(files.root / "pid"))
    record = job.cancel()
    assert record.end is End.INTERRUPTED
    assert gone(child)
    assert job.cancel() == record


def test_daemons_left_behind_by_a_finished_command_are_stopped(
    starting: Launch, files: AttemptLayout
) -> None:
    if starting.launcher.name in THROUGH_A_SHELL:
        pytest.skip("the end of a container takes its processes along; the stand-in has no container")
    code = (
        "import subprocess, sys\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(subprocess.Popen(sleeper, start_new_session=True).pid)\n"
    )
    record = wait(starting.submit(python(files, code), files, Resources()))
    assert record.ok
    assert gone(int(files.log.read_text()))


def test_an_attempt_is_found_again_while_it_runs_and_after(starting: Launch, files: AttemptLayout) -> None:
    code = "import pathlib\nwhile not pathlib.Path('go').exists(): pass\nraise SystemExit(5)"
    starting.submit(python(files, code), files, Resources())
    wait_for(files.process)
    again = starting.reattach(files)
    assert not isinstance(again, ExitRecord)
    assert again.poll() is None
    (files.root / "go").touch()
    assert wait(again).code == 5
    after = starting.reattach(files)
    assert isinstance(after, ExitRecord) and after.code == 5


def test_a_killed_supervisor_is_lost_and_its_command_is_not_taken_for_finished(
    starting: Launch, files: AttemptLayout
) -> None:
    job = starting.submit(python(files, "import time; time.sleep(600)"), files, Resources())
    wait_for(files.process)
    supervisor = psutil.Process(read_json(files.process, dict)["pid"])
    below = supervisor.children(recursive=True)
    supervisor.kill()
    record = wait(job)
    for process in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert (record.end, record.ok) == (End.LOST, False)
    assert starting.reattach(files) == record


def test_an_attempt_that_never_started_is_lost(starting: Launch, files: AttemptLayout) -> None:
    record = starting.reattach(files)
    assert isinstance(record, ExitRecord) and record.end is End.LOST


def test_the_command_is_left_as_a_script_that_runs_by_hand(starting: Launch, files: AttemptLayout) -> None:
    wait(starting.submit(python(files, "print('a b')", GREETING="it's"), files, Resources()))
    script = files.command.read_text()
    assert "export GREETING='it'\"'\"'s'" in script
    if starting.launcher.name in THROUGH_A_SHELL:
        assert "print(" in script and starting.launcher.name in script
    else:
        assert script.splitlines()[-1].endswith("'print('\"'\"'a b'\"'\"')'")


def test_an_unwritable_attempt_directory_is_blocked(starting: Launch, tmp_path: Path) -> None:
    nowhere = AttemptLayout(tmp_path / "file" / "attempt")
    (tmp_path / "file").write_text("")
    with pytest.raises(BlockedError):
        starting.submit(Command(argv=("true",), cwd="/"), nowhere, Resources())


def test_an_unknown_scheduler_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'local'"):
        launch.scheduler("locale")


def test_files_of_an_attempt_are_private_to_nobody_but_written_whole(files: AttemptLayout) -> None:
    wait(launch.launch_for().submit(python(files, "pass"), files, Resources()))
    leftovers = [path for path in files.root.iterdir() if path.name.startswith(".")]
    assert not leftovers
    assert stat.S_ISREG(files.exit.stat().st_mode)
