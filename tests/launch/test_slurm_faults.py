"""What goes wrong on a cluster, done to the real Slurm: the right verdict, nothing lost, never a Pass by mistake."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.flow.small_runs import Told, small, small_run
from tests.launch.engines import require

from proveout import launch
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources, Step
from proveout.flow.execute import Policy, execute
from proveout.launch import Job, Launch, LaunchSite
from proveout.store.runs import Run, find

ROOT = Path(__file__).parents[2]
WAIT = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\n"

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    require("slurm")


def starting(**slurm: object) -> Launch:
    return launch.launch_for(LaunchSite(scheduler="slurm", tables={"slurm": slurm}))


def files_in(folder: Path, name: str = "attempt") -> AttemptLayout:
    (folder / name).mkdir()
    return AttemptLayout(folder / name)


def python(files: AttemptLayout, code: str, **env: str) -> Command:
    return Command(argv=(sys.executable, "-c", code), cwd=str(files.root), env=env)


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come to that"
        time.sleep(0.02)


def ended(job: Job, seconds: float = 120.0) -> ExitRecord:
    found: list[ExitRecord] = []
    until(lambda: (record := job.poll()) is not None and (found.append(record) or True), seconds)
    return found[0]


def number(files: AttemptLayout) -> str:
    until((files.root / "slurm" / "job.json").exists)
    return read_json(files.root / "slurm" / "job.json", dict[str, str])["job"]


def verdict(run: Run, site: Launch) -> str:
    told = Told()
    execute(run, Policy(launch=site), told)
    return told.verdicts["s"]


@pytest.fixture(scope="module")
def over_its_limit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AttemptLayout, Job]]:
    """Submitted before the other tests, since Slurm counts limits in minutes."""
    files = files_in(tmp_path_factory.mktemp("limit"))
    job = starting(time="1").submit(python(files, "import time; time.sleep(600)"), files, Resources())
    yield files, job
    job.cancel()


@pytest.fixture(autouse=True)
def early(over_its_limit: tuple[AttemptLayout, Job]) -> None:
    """Have the slow one begin with the first test of this module."""


def test_proveout_killed_in_the_middle_goes_on_with_the_same_job(tmp_path: Path) -> None:
    code = WAIT + "open('ran', 'a').write('once ')"
    run = small_run(tmp_path, [small("s", code)])
    driver = (
        "import sys\nfrom proveout import launch\nfrom proveout.flow.execute import Policy, execute\n"
        "from proveout.store.runs import find\nfrom tests.flow.small_runs import Told\nfrom pathlib import Path\n"
        "site = launch.launch_for(launch.LaunchSite(scheduler='slurm'))\n"
        "execute(find(Path('.'), sys.argv[1]), Policy(launch=site), Told())\n"
    )
    proveout = subprocess.Popen([sys.executable, "-c", driver, str(run.layout.root)], cwd=ROOT)
    until(lambda: list(run.layout.attempts.glob("*/process.json")))
    os.kill(proveout.pid, signal.SIGKILL)
    proveout.wait()
    attempt = next(run.layout.attempts.iterdir())
    (attempt / "go").touch()
    again = find(tmp_path, str(run.layout.root))
    assert verdict(again, starting()) == "Pass"
    assert len(list(run.layout.attempts.iterdir())) == 1
    assert (attempt / "ran").read_text() == "once "


def test_a_restarted_controller_loses_nothing(tmp_path: Path, alone_with_slurm: None) -> None:
    files = files_in(tmp_path)
    job = starting().submit(python(files, WAIT + "raise SystemExit(7)"), files, Resources())
    until(files.process.exists)
    folder = Path(os.environ["SLURM_CONF"]).parent
    controller = int((folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGKILL)
    until(lambda: not psutil.pid_exists(controller) or psutil.Process(controller).status() == "zombie")
    limit = time.monotonic() + 3
    while time.monotonic() < limit:
        assert job.poll() is None
        time.sleep(0.1)
    (files.root / "go").touch()
    subprocess.run([str(ROOT / ".ci" / "slurm"), "start"], check=True)
    record = ended(job)
    assert (record.end, record.code) == (End.EXITED, 7)
    assert "disagree" not in record.detail


def test_a_dead_node_is_blocked_even_where_the_command_says_it_was_good(
    tmp_path: Path, alone_with_slurm: None
) -> None:
    site = starting(partition="frail")
    run = small_run(tmp_path, [small("s", WAIT)])
    folder = Path(os.environ["SLURM_CONF"]).parent
    told = Told()

    def kill_the_node(_step: Step) -> None:
        attempt = next(run.layout.attempts.iterdir())
        if (attempt / "go").exists() or not (attempt / "process.json").exists():
            return
        for process in psutil.process_iter(["name", "cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            if process.info["name"] == "slurmstepd" and number(AttemptLayout(attempt)) in words:
                process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((folder / "slurmd-frail.pid").read_text()), signal.SIGKILL)
        (attempt / "go").touch()

    told.on_progress = kill_the_node  # type: ignore[method-assign]
    try:
        results = execute(run, Policy(launch=site), told)
    finally:
        subprocess.run([str(ROOT / ".ci" / "slurm"), "start"], check=True)
    assert told.verdicts["s"] == "Blocked"
    assert "NODE_FAIL" in results[0].attempts[-1].exit.detail


def test_a_job_that_somebody_else_cancels_is_incomplete_and_says_so(tmp_path: Path) -> None:
    run = small_run(tmp_path, [small("s", "import time; time.sleep(600)")])
    told, done = Told(), []

    def cancel(_step: Step) -> None:
        files = AttemptLayout(next(run.layout.attempts.iterdir()))
        if files.process.exists() and not done:
            done.append(subprocess.run(["scancel", number(files)], check=True))

    told.on_progress = cancel  # type: ignore[method-assign]
    results = execute(run, Policy(launch=starting()), told)
    assert told.verdicts["s"] == "Incomplete"
    assert "CANCELLED by somebody else" in results[0].attempts[-1].exit.detail


def test_a_requeued_job_is_run_once_only_and_blocked(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    code = "open('ran', 'a').write('once '); import time; time.sleep(600)"
    job = starting(requeue=True).submit(python(files, code), files, Resources())
    until((files.root / "ran").exists)
    subprocess.run(["scontrol", "requeue", number(files)], check=True)
    record = ended(job)
    assert record.end is End.EVICTED
    assert "requeued" in record.detail
    assert (files.root / "ran").read_text() == "once "


def test_a_supervisor_that_cannot_start_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proveout.launch.slurm.scheduler.FILE_SECONDS", 3.0)
    files = files_in(tmp_path)
    site = starting(python=str(tmp_path / "no-python"))
    record = ended(site.submit(python(files, "pass"), files, Resources()))
    assert record.end is End.NOT_STARTED
    assert "slurm-" in record.detail


def test_a_full_disk_is_blocked_and_the_run_goes_on_when_there_is_space(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True)
    try:
        code = (
            "import os, contextlib\n"
            "with contextlib.suppress(OSError):\n"
            "    while True: os.write(1, b'x' * 4095 + b'\\n')\n"
        )
        run = small_run(disk, [small("s", code)])
        with contextlib.suppress(OSError):
            verdict(run, starting())
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        found = find(disk, str(run.layout.root))
        told = Told()
        results = execute(found, Policy(launch=starting()), told)
        first = results[0].attempts[0]
        assert first.verdict.value == "Blocked"
        assert "no space is left" in first.exit.detail
        assert len(list(run.layout.attempts.iterdir())) == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_flood_of_output_is_followed_to_its_end(tmp_path: Path) -> None:
    megabytes = 200
    code = f"import os\nline = (b'a' * 127 + b'\\n') * 8192\nfor _ in range({megabytes}): os.write(1, line)"
    run = small_run(tmp_path, [small("s", code)])
    assert verdict(run, starting()) == "Pass"
    log = next(run.layout.attempts.glob("*/run.log"))
    assert log.stat().st_size == megabytes << 20
    log.unlink()


def test_a_job_that_prints_nothing_passes_with_an_empty_log(tmp_path: Path) -> None:
    run = small_run(tmp_path, [small("s", "pass")])
    assert verdict(run, starting()) == "Pass"
    assert next(run.layout.attempts.glob("*/run.log")).read_bytes() == b""


SKEWED = """#!/bin/sh
export NO_FAKE_STAT=1
exec faketime -f {offset} {python} "$@"
"""
WRITES = (
    "from tensorboard.compat.proto.event_pb2 import Event\n"
    "from tensorboard.summary.writer.event_file_writer import EventFileWriter\n"
    "from tensorboard.compat.proto.summary_pb2 import Summary\n"
    "import sys, time\n"
    "writer = EventFileWriter(sys.argv[1])\n"
    "value = Summary.Value(tag='train/loss', simple_value=1.0)\n"
    "writer.add_event(Event(wall_time=time.time() - float(sys.argv[2]), step=1, summary=Summary(value=[value])))\n"
    "writer.close()\n"
)


def trained(folder: str) -> Step:
    import msgspec

    from proveout.domain.step import Artifact, Source

    step = small("s", "")
    return msgspec.structs.replace(
        step,
        command=Command(argv=(sys.executable, "-c", WRITES, folder, "0")),
        planned_steps=1,
        metrics=(Source(format="tensorboard", path=folder),),
        artifacts=(Artifact(path=folder, what="event files"),),
    )


@pytest.mark.parametrize("offset", ["-3600", "+3600"])
def test_a_host_with_another_clock_neither_ages_nor_renews_what_it_writes(
    tmp_path: Path, offset: str
) -> None:
    python = tmp_path / "python"
    python.write_text(SKEWED.format(offset=offset, python=sys.executable))
    python.chmod(0o755)
    run = small_run(tmp_path, [trained("tensorboard")])
    site = starting(python=str(python))
    told = Told()
    results = execute(run, Policy(launch=site), told)
    assert told.verdicts["s"] == "Pass", results[0].attempts[-1].findings
    record = results[0].attempts[-1].exit
    assert abs(record.skew - float(offset)) < 5
    assert abs(record.started - time.time()) < 120


@pytest.mark.parametrize("offset", ["-3600", "+3600"])
def test_old_records_stay_old_on_a_host_with_another_clock(tmp_path: Path, offset: str) -> None:
    python = tmp_path / "python"
    python.write_text(SKEWED.format(offset=offset, python=sys.executable))
    python.chmod(0o755)
    old = tmp_path / "elsewhere"
    subprocess.run([sys.executable, "-c", WRITES, str(old), "60"], check=True)
    for path in old.iterdir():
        os.utime(path, (time.time() - 60, time.time() - 60))
    step = trained(str(old))
    import msgspec

    step = msgspec.structs.replace(step, command=Command(argv=(sys.executable, "-c", "pass")), artifacts=())
    run = small_run(tmp_path, [step])
    assert verdict(run, starting(python=str(python))) != "Pass"


def test_a_job_over_its_time_limit_is_blocked_with_the_limit_named(
    over_its_limit: tuple[AttemptLayout, Job], tmp_path: Path
) -> None:
    _, job = over_its_limit
    record = ended(job, seconds=180)
    assert record.end is End.EVICTED
    assert "TIMEOUT" in record.detail and "1:00" in record.detail
    from proveout.domain.evidence import Judgement
    from proveout.domain.verdict import Verdict
    from proveout.flow.settle import settle

    good = Judgement(verdict=Verdict.PASS, results=())
    assert settle(record, good, None) is Verdict.BLOCKED
