"""The tracker fixture and its results files, by real sessions."""

from __future__ import annotations

import json
import math
from pathlib import Path

from proveout.pytest_plugin.tracking.layout import ResultsLayout
from proveout.pytest_plugin.tracking.write import write_results

GUIDE_EXAMPLE = """
def test_exponentiate(tracker):
    starting_mem = tracker.get_max_mem()
    base = 2
    exponent = 4
    result = base ** exponent
    tracker.track("result", result)
    tracker.log_max_mem("memory_after_exponentiating")
    change_in_mem = tracker.get_max_mem() - starting_mem
    tracker.track("change_in_mem", change_in_mem)
    assert result == 16
"""


def test_the_guides_example_runs_unchanged(project):
    project.write("tests/unit/test_example.py", GUIDE_EXAMPLE)
    project.git("init", "-q")
    project.git("add", "-A")
    project.git("commit", "-qm", "first")

    done = project.run()

    assert done.returncode == 0, done.stdout
    results = project.results()
    assert list(results)[:6] == [
        "exit_status",
        "git_commit",
        "start_time",
        "metrics",
        "gpu_types",
        "coverage",
    ]
    assert results["exit_status"] == 0
    assert results["git_commit"] == project.git("rev-parse", "HEAD")
    assert results["git_dirty"] is False
    assert len(results["start_time"]) == len("2025-03-24 23:34:12")
    metrics = results["metrics"]["test_example::test_exponentiate"]
    assert set(metrics) == {"result", "memory_after_exponentiating", "change_in_mem", "_elapsed"}
    assert metrics["result"] == 16
    assert metrics["memory_after_exponentiating"] > 0
    assert metrics["_elapsed"] > 0
    assert project.dated_results() == [results]


def test_a_changed_file_makes_the_commit_dirty(project):
    project.write("tests/unit/test_a.py", "def test_a(tracker): tracker.track('x', 1)\n")
    project.git("init", "-q")
    project.git("add", "-A")
    project.git("commit", "-qm", "first")
    project.write("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider -q\n")
    before = (project.root / ".git" / "index").read_bytes()

    project.run()

    assert project.results()["git_dirty"] is True
    assert (project.root / ".git" / "index").read_bytes() == before


def test_cases_and_methods_of_one_name_keep_their_own_metrics(project):
    project.write(
        "tests/unit/test_names.py",
        """
        import pytest

        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_case(tracker, n):
            tracker.track("n", n)
            if n == 1:
                tracker.track("only_in_the_first", True)

        class TestA:
            def test_same(self, tracker): tracker.track("who", "A")

        class TestB:
            def test_same(self, tracker): tracker.track("who", "B")
        """,
    )
    project.run()

    assert project.tracked() == {
        "test_case[1]": {"n": 1, "only_in_the_first": True},
        "test_case[2]": {"n": 2},
        "test_case[3]": {"n": 3},
        "TestA::test_same": {"who": "A"},
        "TestB::test_same": {"who": "B"},
    }
    results = project.results()
    joined = results["metrics"]["test_names::test_case"]
    assert (joined["n"], joined["only_in_the_first"]) == (3, True)
    assert results["shared_keys"] == {
        "test_names::test_case": [f"tests/unit/test_names.py::test_case[{n}]" for n in (1, 2, 3)],
        "test_names::test_same": [f"tests/unit/test_names.py::Test{c}::test_same" for c in "AB"],
    }


def test_every_outcome_is_recorded(project):
    project.write(
        "tests/unit/test_outcomes.py",
        """
        import pytest

        @pytest.fixture
        def broken(): raise RuntimeError

        @pytest.fixture
        def breaks_later():
            yield
            raise RuntimeError

        def test_passed(tracker): pass
        def test_failed(): assert False
        def test_error(broken): pass
        def test_teardown_error(breaks_later): pass
        def test_fails_and_teardown_fails(breaks_later): assert False
        def test_skipped(): pytest.skip()
        @pytest.mark.skip
        def test_skipped_by_mark(): pass
        @pytest.mark.xfail
        def test_xfailed(): assert False
        @pytest.mark.xfail
        def test_xpassed(): pass
        """,
    )
    project.write("tests/unit/test_uncollected.py", "import a_module_that_is_missing\n")
    done = project.run("--continue-on-collection-errors")

    assert project.outcomes() == {
        "test_passed": "passed",
        "test_failed": "failed",
        "test_error": "error",
        "test_teardown_error": "error",
        "test_fails_and_teardown_fails": "failed",
        "test_skipped": "skipped",
        "test_skipped_by_mark": "skipped",
        "test_xfailed": "xfailed",
        "test_xpassed": "xpassed",
        "": "collection error",
    }
    assert project.results()["exit_status"] == done.returncode == 1


def test_a_value_that_json_cannot_hold_fails_that_test_alone_and_names_the_metric(project):
    project.write(
        "tests/unit/test_values.py",
        """
        def test_before(tracker): tracker.track("x", 1)
        def test_bad(tracker):
            tracker.track("kept", 1)
            tracker.track("the_bad_one", {"inside": [1, object()]})
        def test_after(tracker): tracker.track("x", 2)
        """,
    )
    done = project.run()

    assert done.returncode == 1
    assert "metric 'the_bad_one'['inside'][1]: a value of type object cannot be written" in done.stdout
    assert project.outcomes() == {"test_before": "passed", "test_bad": "failed", "test_after": "passed"}
    assert project.tracked() == {"test_before": {"x": 1}, "test_bad": {"kept": 1}, "test_after": {"x": 2}}


def test_nan_is_null_in_the_file_and_named_beside_it(project):
    project.write(
        "tests/unit/test_nan.py",
        "def test_nan(tracker):\n"
        "    tracker.track('loss', float('nan'))\n"
        "    tracker.track('curve', [1.0, float('-inf')])\n",
    )
    project.run()

    test = project.results()["tests"]["tests/unit/test_nan.py::test_nan"]
    assert test["metrics"]["loss"] is None
    assert test["metrics"]["curve"] == [1.0, None]
    assert test["non_finite"] == {"loss": "NaN", "curve": {"[1]": "-Infinity"}}


def test_metrics_of_a_forked_child_are_kept(project):
    project.write(
        "tests/unit/test_fork.py",
        """
        import os

        def test_fork(tracker):
            tracker.track("parent", 1)
            child = os.fork()
            if child == 0:
                tracker.track("child", 2)
                os._exit(0)
            os.waitpid(child, 0)
        """,
    )
    project.run()

    assert project.tracked() == {"test_fork": {"parent": 1, "child": 2}}


def test_nothing_is_written_where_no_test_uses_the_tracker(project):
    project.write("tests/unit/test_plain.py", "def test_plain(): pass\n")
    before = project.files()

    done = project.run("-q")

    assert done.returncode == 0
    assert project.files() == before
    assert "proveout" not in done.stdout


def test_configured_results_are_written_without_a_tracker(project):
    project.write("tests/unit/test_plain.py", "def test_plain(): pass\n")
    project.write("pytest.ini", "[pytest]\nproveout_results = out/results.json\n")
    project.run()
    project.latest = project.root / "out" / "results.json"
    assert project.outcomes() == {"test_plain": "passed"}

    project.run("--proveout-results", "../elsewhere.json", cwd=project.unit)
    project.latest = project.root / "tests" / "elsewhere.json"
    assert project.outcomes() == {"test_plain": "passed"}


def test_a_repository_without_tests_unit_gets_its_results_in_its_root(tmp_path: Path, project):
    project.write("tests/unit/test_plain.py", "")
    (project.unit / "test_plain.py").unlink()
    project.unit.rmdir()
    project.write("tests/test_a.py", "def test_a(tracker): tracker.track('x', 1)\n")
    project.run()
    project.latest = project.root / "unit_results.json"
    assert project.tracked() == {"test_a": {"x": 1}}


def test_sessions_within_one_second_keep_a_dated_file_each(tmp_path: Path):
    layout = ResultsLayout(tmp_path / "unit_results.json")
    written = [write_results(layout, "20250324_233412", {"session": number}) for number in range(3)]

    assert [path.name for path in written] == [
        "20250324_233412.json",
        "20250324_233412_1.json",
        "20250324_233412_2.json",
    ]
    assert [json.loads(path.read_text())["session"] for path in written] == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        ["unit_results.json", *(path.name for path in written)]
    )


def test_coverage_is_the_total_that_pytest_cov_reports(project):
    project.write("half.py", "def used():\n    return 1\n\ndef unused():\n    return 2\n")
    project.write(
        "tests/unit/test_half.py",
        "from half import used\ndef test_used(tracker): tracker.track('x', used())\n",
    )
    done = project.run("--cov=half", PYTHONPATH=f"{project.root}:{project.env().get('PYTHONPATH', '')}")

    assert math.isclose(project.results()["coverage"], 75.0), done.stdout
    project.run("-p", "no:cov", PYTHONPATH=f"{project.root}:{project.env().get('PYTHONPATH', '')}")
    assert project.results()["coverage"] == "[n/a] run with --cov=PACKAGE"


def test_a_projects_own_tracker_fixture_stands(project):
    project.write("conftest.py", "import pytest\n@pytest.fixture\ndef tracker(): return 'the project own'\n")
    project.write("tests/unit/test_own.py", "def test_own(tracker): assert tracker == 'the project own'\n")
    done = project.run()

    assert done.returncode == 0, done.stdout
    assert not project.latest.exists()
