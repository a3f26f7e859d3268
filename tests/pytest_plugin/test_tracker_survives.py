"""What a session keeps when it is spread over workers, stopped, interrupted, killed, or cannot write."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

NOT_READY = """
        import time

        def test_finished(tracker):
            tracker.track("x", 1)

        def test_interrupted(tracker):
            tracker.track("before", 2)
            with open({pipe!r}, "w") as pipe:
                pipe.write("ready")
            time.sleep(600)
"""


def test_four_workers_make_one_file(project):
    project.write(
        "tests/unit/test_many.py",
        """
        import os, pytest

        @pytest.mark.parametrize("n", range(40))
        def test_many(tracker, n):
            tracker.track("n", n)
            tracker.track("worker", os.environ["PYTEST_XDIST_WORKER"])
        """,
    )
    done = project.run("-n", "4")

    assert done.returncode == 0, done.stdout
    results = project.results()
    assert results["workers"] == 4
    tracked = project.tracked()
    assert [metrics["n"] for metrics in tracked.values()] == list(range(40))
    assert len({metrics["worker"] for metrics in tracked.values()}) > 1
    assert set(project.outcomes().values()) == {"passed"}
    assert results["metrics"]["test_many::test_many"]["n"] == 39
    assert len(project.dated_results()) == 1
    assert len(list(project.dated.iterdir())) == 1


def test_a_worker_that_dies_loses_nothing(project):
    project.write(
        "tests/unit/test_crash.py",
        """
        import os, pytest

        @pytest.mark.parametrize("n", range(6))
        def test_before(tracker, n): tracker.track("n", n)

        def test_crash(tracker):
            tracker.track("before_the_crash", 7)
            os._exit(9)
        """,
    )
    done = project.run("-n", "2")

    assert done.returncode == 1, done.stdout
    assert project.tracked() == {
        **{f"test_before[{n}]": {"n": n} for n in range(6)},
        "test_crash": {"before_the_crash": 7},
    }
    assert project.outcomes()["test_crash"] == "crashed"
    assert project.results()["exit_status"] == 1


def test_the_only_test_that_tracks_may_be_the_one_that_kills_its_worker(project):
    project.write(
        "tests/unit/test_crash.py",
        "import os\ndef test_crash(tracker):\n    tracker.track('x', 1)\n    os._exit(9)\n",
    )
    project.run("-n", "1", "--max-worker-restart=0")

    assert project.tracked() == {"test_crash": {"x": 1}}


def test_stopping_at_the_first_failure_keeps_what_ran(project):
    project.write(
        "tests/unit/test_x.py",
        "def test_1(tracker): tracker.track('x', 1)\n"
        "def test_2(tracker): tracker.track('x', 2); assert False\n"
        "def test_3(tracker): tracker.track('x', 3)\n",
    )
    project.run("-x")

    assert project.tracked() == {"test_1": {"x": 1}, "test_2": {"x": 2}}
    assert project.results()["exit_status"] == 1


def test_ctrl_c_keeps_what_ran_and_the_test_under_way(project, when_ready):
    project.write("tests/unit/test_slow.py", NOT_READY.format(pipe=str(when_ready.pipe)))
    process = project.start()
    when_ready(process, signal.SIGINT)

    assert process.returncode == project.results()["exit_status"] == 2
    assert project.tracked() == {"test_finished": {"x": 1}, "test_interrupted": {"before": 2}}
    assert project.outcomes() == {"test_finished": "passed", "test_interrupted": "unfinished"}


def test_ctrl_c_with_workers_keeps_what_ran(project, when_ready):
    project.write("tests/unit/test_slow.py", NOT_READY.format(pipe=str(when_ready.pipe)))
    process = project.start("-n", "1")
    when_ready(process, signal.SIGINT)

    assert project.tracked() == {"test_finished": {"x": 1}, "test_interrupted": {"before": 2}}
    assert project.results()["exit_status"] == 2


def test_a_killed_session_is_recovered_by_the_next_one(project, when_ready):
    project.write("tests/unit/test_slow.py", NOT_READY.format(pipe=str(when_ready.pipe)))
    project.write("tests/unit/test_quick.py", "def test_quick(tracker): tracker.track('y', 3)\n")
    process = project.start("tests/unit/test_slow.py")
    when_ready(process, signal.SIGKILL)
    assert not project.latest.exists()

    project.run("tests/unit/test_quick.py")

    assert project.tracked() == {"test_quick": {"y": 3}}
    killed = next(each for each in project.dated_results() if each["exit_status"] == "killed")
    tests = {node.partition("::")[2]: test for node, test in killed["tests"].items()}
    assert tests["test_finished"]["outcome"] == "passed"
    assert tests["test_finished"]["metrics"]["x"] == 1
    assert tests["test_interrupted"]["outcome"] == "unfinished"
    assert tests["test_interrupted"]["metrics"] == {"before": 2}
    assert len(project.dated_results()) == len(list(project.dated.iterdir())) == 2


def test_the_last_sessions_file_does_not_stand_for_one_that_was_killed(project, when_ready):
    project.write("tests/unit/test_quick.py", "def test_quick(tracker): tracker.track('y', 3)\n")
    project.run()
    project.write("tests/unit/test_slow.py", NOT_READY.format(pipe=str(when_ready.pipe)))
    process = project.start("tests/unit/test_slow.py")
    when_ready(process, signal.SIGKILL)

    assert not project.latest.exists()
    assert len(project.dated_results()) == 1


def test_a_session_that_still_runs_is_not_taken_for_a_killed_one(project, when_ready):
    project.write("tests/unit/test_slow.py", NOT_READY.format(pipe=str(when_ready.pipe)))
    project.write("tests/unit/test_quick.py", "def test_quick(tracker): tracker.track('y', 3)\n")
    process = project.start("tests/unit/test_slow.py")
    with when_ready.pipe.open() as said:
        said.read()
    project.run("tests/unit/test_quick.py")
    assert [each["exit_status"] for each in project.dated_results()] == [0]

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert sorted(each["exit_status"] for each in project.dated_results()) == [0, 2]


def test_a_directory_that_cannot_be_written_costs_no_test_and_no_metric(
    project, held_by_permissions, tmp_path: Path
):
    project.write("tests/unit/test_a.py", "def test_a(tracker): tracker.track('x', 1)\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    project.unit.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = project.run(prefix=held_by_permissions, TMPDIR=str(temporary))
    finally:
        project.unit.chmod(stat.S_IRWXU)

    assert done.returncode == 0, done.stdout + done.stderr
    assert not project.latest.exists()
    [written] = temporary.rglob("unit_results.json")
    assert f"cannot write {project.latest} (Permission denied); unit results are in {written}" in done.stdout
    project.latest = written
    assert project.tracked() == {"test_a": {"x": 1}}


def test_workers_that_cannot_write_lose_nothing(project, held_by_permissions, tmp_path: Path):
    project.write(
        "tests/unit/test_a.py",
        "import os\n"
        "def test_a(tracker): tracker.track('x', 1)\n"
        "def test_b(tracker):\n    tracker.track('x', 2)\n    os._exit(1)\n",
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    project.unit.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        project.run("-n", "1", prefix=held_by_permissions, TMPDIR=str(temporary))
    finally:
        project.unit.chmod(stat.S_IRWXU)

    [project.latest] = temporary.rglob("unit_results.json")
    assert project.tracked() == {"test_a": {"x": 1}, "test_b": {"x": 2}}


def test_the_session_runs_without_xdist_too(project):
    project.write("tests/unit/test_a.py", "def test_a(tracker): tracker.track('x', 1)\n")
    done = project.run("-p", "no:xdist")

    assert done.returncode == 0, done.stdout
    assert project.tracked() == {"test_a": {"x": 1}}
