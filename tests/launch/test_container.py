"""Containers of a real podman: what is handed in, and every way in which one can end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conftest import Answer
from tests.launch.engines import IMAGE, require

from proveout import launch
from proveout.domain.errors import BlockedError, UsageError
from proveout.domain.evidence import End, ExitRecord
from proveout.domain.files import read_json
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import Job, Launch, LaunchSite

pytestmark = pytest.mark.real
BENCH = ("run", "--level", "bench:0", "--launcher", "container", "--launch", "container.engine=podman")
PATIENCE_SECONDS = 180.0


@pytest.fixture(autouse=True)
def engine() -> None:
    require("container")


@pytest.fixture
def files(tmp_path: Path) -> AttemptLayout:
    root = tmp_path / "attempt"
    root.mkdir()
    return AttemptLayout(root)


def starting(**settings: Any) -> Launch:
    table = {"engine": "podman", **settings}
    return launch.launch_for(LaunchSite(launcher="container", image=IMAGE, tables={"container": table}))


def python(files: AttemptLayout, code: str, **env: str) -> Command:
    return Command(argv=("python3", "-c", code), cwd=str(files.root), env=env)


def wait(job: Job) -> ExitRecord:
    while (record := job.poll()) is None:
        time.sleep(0.02)
    return record


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def name_of(files: AttemptLayout) -> str:
    return str(read_json(files.job, dict[str, Any])["cleanup"][-1])


def known(name: str) -> bool:
    """Whether podman knows a container, running or not."""
    return subprocess.run(["podman", "container", "exists", name], check=False).returncode == 0


@pytest.fixture
def sleeping(files: AttemptLayout) -> Iterator[tuple[Job, str]]:
    """A container whose command ignores SIGTERM, and its name."""
    code = (
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); pathlib.Path('up').touch(); time.sleep(600)"
    )
    job = starting().submit(python(files, code), files, Resources())
    until((files.root / "up").exists)
    name = name_of(files)
    yield job, name
    subprocess.run(["podman", "rm", "--force", name], capture_output=True, check=False)


def test_a_missing_image_is_blocked_with_the_engines_line(proveout: Callable[..., Answer]) -> None:
    answer = proveout(*BENCH, "--image", "localhost/no-such-image:1", "--json")
    assert answer.status == 3
    (step,) = answer.json["steps"]
    assert step["verdict"] == "Blocked"
    assert "image localhost/no-such-image:1 is not here: Error: " in step["reason"]
    assert answer.json["result"] == "Blocked"


def test_a_container_over_its_memory_limit_is_blocked_as_that(proveout: Callable[..., Answer]) -> None:
    answer = proveout(*BENCH, "--image", IMAGE, "--launch", "container.memory=48m", "--json")
    assert answer.status == 3
    (attempt,) = answer.json["steps"][0]["attempts"]
    assert attempt["exit"]["end"] == End.EVICTED
    assert attempt["exit"]["detail"].startswith("out of memory: the kernel killed ")
    assert attempt["triage"]["boundary"] == "environment"
    assert attempt["triage"]["subkind"] == "host-oom"
    assert "of this container for memory" in attempt["triage"]["cause"]["text"]


def test_a_worker_killed_for_memory_is_told_though_the_command_itself_lives(files: AttemptLayout) -> None:
    code = "import subprocess as s; raise SystemExit(bool(s.run(['python3', '-c', 'bytearray(2**28)']).returncode))"
    record = wait(starting(memory="64m").submit(python(files, code), files, Resources()))
    assert (record.end, record.detail) == (End.EVICTED, "out of memory: the kernel killed 1 process(es)")


def test_cancel_removes_a_container_that_does_not_obey(sleeping: tuple[Job, str]) -> None:
    job, name = sleeping
    assert known(name)
    began = time.monotonic()
    assert job.cancel().end is End.INTERRUPTED
    assert time.monotonic() - began < 10
    assert not known(name)


def test_a_container_does_not_outlive_its_killed_supervisor(
    sleeping: tuple[Job, str], files: AttemptLayout
) -> None:
    job, name = sleeping
    psutil.Process(read_json(files.process, dict[str, Any])["pid"]).kill()
    assert wait(job).end is End.LOST
    assert not known(name)


def test_a_container_that_another_kills_was_not_ended_by_its_command(sleeping: tuple[Job, str]) -> None:
    job, name = sleeping
    subprocess.run(["podman", "kill", name], check=True, capture_output=True)
    record = wait(job)
    assert (record.end, record.detail) == (
        End.EVICTED,
        "what ran the command was killed (exit status 137)",
    )


def test_setup_runs_first_in_the_same_container_and_is_recorded(files: AttemptLayout) -> None:
    begin = starting(setup=["sh -c 'echo \"made here\" > /made'"])
    record = wait(begin.submit(python(files, "print(open('/made').read())"), files, Resources()))
    assert record.ok
    assert "made here" in files.log.read_text()
    facts = launch.launch_record(files)
    assert facts is not None
    assert facts.facts["set up in the container"] == "sh -c 'echo \"made here\" > /made'"


def test_a_token_in_a_setup_command_is_shown_nowhere(files: AttemptLayout) -> None:
    begin = starting(setup=["echo --index-url https://me:planted-token@host/simple"])
    wait(begin.submit(python(files, "pass"), files, Resources()))
    facts = launch.launch_record(files)
    assert facts is not None
    assert "planted-token" not in str(facts.facts) + files.log.read_text().splitlines()[0]


def test_setup_that_fails_is_no_run_of_the_command(files: AttemptLayout) -> None:
    begin = starting(setup=["sh -c 'exit 7'"])
    record = wait(begin.submit(python(files, "open('ran', 'w')"), files, Resources()))
    assert record.end is End.NOT_STARTED
    assert record.detail.startswith("setup failed with status 7: sh -c")
    assert not (files.root / "ran").exists()


def test_every_argument_arrives_as_it_is(files: AttemptLayout) -> None:
    words = ("a b", "", "$HOME", "*", "'\"", "-k", "a and b", "line\nbreak", "--")
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    wait(
        starting().submit(
            Command(argv=("python3", "-c", code, *words), cwd=str(files.root)), files, Resources()
        )
    )
    assert json.loads(files.log.read_text()) == list(words)


def test_a_directory_with_spaces_is_mounted_and_used(tmp_path: Path) -> None:
    files = AttemptLayout(tmp_path / "an attempt 1")
    files.root.mkdir()
    record = wait(starting().submit(python(files, "open('made here', 'w')"), files, Resources()))
    assert record.ok
    assert (files.root / "made here").exists()


def test_user_and_umask_are_those_that_were_asked_for(files: AttemptLayout) -> None:
    files.root.chmod(0o777)
    record = wait(
        starting(user="1234:1234", umask="0027").submit(
            python(files, "open('made', 'w')"), files, Resources()
        )
    )
    assert record.ok
    found = (files.root / "made").stat()
    assert (found.st_uid, oct(found.st_mode & 0o777)) == (1234, "0o640")


def test_only_variables_that_are_allowed_get_in_and_no_secret_stands_in_a_command_line(
    files: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "planted-token")
    monkeypatch.setenv("SITE_NAME", "allowed")
    monkeypatch.setenv("OF_THE_CALLER", "stays out")
    site = LaunchSite(
        launcher="container", image=IMAGE, env=("SITE_NAME",), tables={"container": {"engine": "podman"}}
    )
    code = "import os; print(*(os.environ.get(n) for n in ('HF_TOKEN', 'SITE_NAME', 'OF_THE_CALLER', 'PATH_IN')))"
    job = launch.launch_for(site).submit(python(files, code, PATH_IN="of the step"), files, Resources())
    assert wait(job).ok
    assert files.log.read_text().split() == ["planted-token", "allowed", "None", "of", "the", "step"]
    for written in (files.command, files.job, files.env, files.root / "container.sh"):
        assert "planted-token" not in written.read_text()


def test_a_flood_of_output_arrives_whole(files: AttemptLayout) -> None:
    size = 400 * 2**20
    code = f"import sys; block = b'x' * 1023 + b'\\n'; [sys.stdout.buffer.write(block) for _ in range({size // 1024})]"
    assert wait(starting().submit(python(files, code), files, Resources())).ok
    assert files.log.stat().st_size == size
    files.log.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_is_no_success_though_the_command_ends_well(small_disk: Path) -> None:
    files = AttemptLayout(small_disk / "attempt")
    files.root.mkdir()
    code = (
        "import os\ntry:\n    for _ in range(9000): os.write(1, b'x' * 1023 + b'\\n')\nexcept OSError: pass"
    )
    record = wait(starting().submit(python(files, code), files, Resources()))
    assert record.end is End.EVICTED
    assert "no space is left where the log is written" in record.detail


def test_an_engine_that_is_not_there_is_blocked(files: AttemptLayout) -> None:
    with pytest.raises(BlockedError, match="no container engine: no-such-engine is not here"):
        starting(engine="no-such-engine").submit(python(files, "pass"), files, Resources())


def test_no_image_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="needs an image"):
        launch.launch_for(LaunchSite(launcher="container"))


def test_a_killed_proveout_is_picked_up_and_the_container_judged(
    tmp_path: Path, proveout: Callable[..., Answer]
) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-m", "proveout", *BENCH, "--image", IMAGE],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: list(tmp_path.glob(".proveout/runs/*/attempts/*/config.json")))
    driver.kill()
    driver.wait()
    answer = proveout("resume", "--json")
    assert (answer.json["result"], answer.status) == ("Pass", 0)
    (attempt,) = answer.json["steps"][0]["attempts"]
    assert attempt["exit"]["launcher"] == "local+container"
    assert attempt["launch"]["facts"]["image"] == IMAGE
    assert "sha256:" in attempt["launch"]["facts"]["digest"]
