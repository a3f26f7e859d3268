"""Sessions with ``--impacted``: what runs, what is left out, and what is remembered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from tests.pytest_plugin.impacted.conftest import HOOKS, ran

PROJECT = {
    "p/__init__.py": "",
    "p/a.py": "def f():\n    return 1\n",
    "p/b.py": "",
    "tests/test_a.py": "import pytest\nfrom p.a import f\n\n@pytest.mark.parametrize('x', [1, 2])\n"
    "def test_f(x):\n    assert f() == 1\n\ndef test_g():\n    pass\n",
    "tests/test_b.py": "import p.b\n\ndef test_b():\n    pass\n",
}
A = {f"tests/test_a.py::{name}" for name in ("test_f[1]", "test_f[2]", "test_g")}
B = {"tests/test_b.py::test_b"}
BROKEN = "def f():\n    return 2\n"


def test_first_everything_then_nothing_then_what_changed(make) -> None:
    repo = make(PROJECT)
    assert set(ran(repo.pytest("--impacted"))) == A | B
    second = repo.pytest("--impacted")
    assert (ran(second), second.returncode) == ({}, 0)
    assert "2 files left out whole" in second.stdout
    assert set(ran(repo.edit("p/b.py").pytest("--impacted"))) == B


def test_a_failing_test_runs_until_it_passes(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    repo.write({"p/a.py": BROKEN})
    first = repo.pytest("--impacted")
    assert first.returncode == 1
    assert set(ran(first)) == A
    failing = {"tests/test_a.py::test_f[1]": "FAILED", "tests/test_a.py::test_f[2]": "FAILED"}
    assert ran(repo.pytest("--impacted")) == failing
    repo.write({"p/a.py": PROJECT["p/a.py"]})
    assert set(ran(repo.pytest("--impacted"))) == A
    assert ran(repo.pytest("--impacted")) == {}


def test_an_edit_that_is_taken_back_leaves_what_passed_before_to_run_once(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    assert ran(repo.edit("p/a.py").write({"p/a.py": PROJECT["p/a.py"]}).pytest("--impacted")) == {}


def test_tests_that_nothing_concerned_move_on_with_the_tree(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    repo.edit("p/a.py").pytest("--impacted")
    state = json.loads((repo.root / ".proveout/impacted/state.json").read_text())
    assert len(state["snapshots"]) == 1
    assert {outcome for outcome, _ in state["tests"].values()} == {"passed"}


def test_tests_left_out_by_k_stay_to_be_run(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    repo.edit("p/a.py")
    assert set(ran(repo.pytest("--impacted", "-k", "test_g"))) == {"tests/test_a.py::test_g"}
    assert set(ran(repo.pytest("--impacted"))) == A - {"tests/test_a.py::test_g"}


def test_a_test_that_never_ran_is_not_taken_for_passed(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted", "tests/test_a.py::test_g")
    assert set(ran(repo.pytest("--impacted"))) == (A | B) - {"tests/test_a.py::test_g"}


def test_a_new_test_in_a_file_seen_only_in_part_still_runs(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    text = PROJECT["tests/test_b.py"]
    repo.write({"tests/test_b.py": text + "\ndef test_new():\n    assert False\n"})
    repo.pytest("--impacted", "tests/test_b.py::test_b")
    assert "tests/test_b.py::test_new" in ran(repo.pytest("--impacted"))


def test_x_and_marks_compose(make) -> None:
    repo = make({**PROJECT, "pytest.ini": "[pytest]\nmarkers = slow: takes long\n"})
    repo.write({"p/a.py": BROKEN})
    stopped = repo.pytest("--impacted", "-x")
    assert list(ran(stopped).values()).count("FAILED") == 1
    rest = ran(repo.pytest("--impacted"))
    assert set(rest) == A | B
    assert ran(repo.edit("p/b.py").pytest("--impacted", "-m", "slow")) == {}
    assert set(ran(repo.pytest("--impacted"))) >= B


def test_workers_collect_the_same_and_their_outcomes_count(make) -> None:
    repo = make(PROJECT)
    plugins = (HOOKS, "xdist")
    assert set(ran(repo.pytest("--impacted", "-n", "2", plugins=plugins))) == A | B
    idle = repo.pytest("--impacted", "-n", "2", plugins=plugins)
    assert (ran(idle), idle.returncode) == ({}, 0)
    repo.write({"p/a.py": BROKEN})
    assert set(ran(repo.pytest("--impacted", "-n", "2", plugins=plugins))) == A
    assert len(ran(repo.pytest("--impacted"))) == 2


def test_a_worker_that_dies_leaves_its_test_to_run_again(make) -> None:
    dies = "import os\n\ndef test_dies():\n    os._exit(3)\n\ndef test_lives():\n    pass\n"
    repo = make({"tests/test_d.py": dies})
    plugins = (HOOKS, "xdist")
    repo.pytest("--impacted", "-n", "1", plugins=plugins)
    repo.write({"tests/test_other.py": "def test_o():\n    pass\n"})
    again = repo.pytest("--impacted", "-n", "1", plugins=plugins)
    assert "tests/test_d.py::test_dies" in again.stdout
    assert again.returncode != 0


def test_ctrl_c_keeps_what_is_known(make, tmp_path) -> None:
    pipe = tmp_path / "ready"
    os.mkfifo(pipe)
    waits = "import time\n\ndef test_quick():\n    pass\n\ndef test_waits():\n"
    repo = make({"tests/test_w.py": f"{waits}    open({str(pipe)!r}, 'w').close()\n    time.sleep(60)\n"})
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", HOOKS, "--impacted"],
        cwd=repo.root,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    with pipe.open() as said:
        said.read()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 2
    left = repo.pytest("--impacted", "--collect-only", "-q")
    assert "test_waits" in left.stdout
    assert "test_quick" not in left.stdout


def test_collection_errors_run_again_until_they_are_gone(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    repo.write({"p/b.py": "raise RuntimeError('no')\n"})
    assert repo.pytest("--impacted").returncode == 2
    assert repo.pytest("--impacted").returncode == 2
    repo.write({"p/b.py": "\n"})
    assert set(ran(repo.pytest("--impacted"))) == B


def test_a_skipped_test_is_no_pass_and_an_expected_failure_is_one(make) -> None:
    text = "import pytest\n\ndef test_s():\n    pytest.skip('no gpu')\n\n"
    text += "@pytest.mark.xfail\ndef test_x():\n    assert False\n"
    repo = make({"tests/test_s.py": text})
    repo.pytest("--impacted")
    again = repo.pytest("--impacted")
    assert "1 skipped" in again.stdout
    assert "tests/test_s.py::test_x" not in ran(again)


def test_the_base_decides_without_any_record(make) -> None:
    repo = make(PROJECT).edit("p/b.py")
    assert set(ran(repo.pytest("--impacted", "--base", "HEAD"))) == B


def test_rebuild_starts_afresh(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    assert set(ran(repo.pytest("--impacted", "--impacted-rebuild"))) == A | B


def test_explain_prints_the_chain_and_runs_nothing(make) -> None:
    repo = make(PROJECT)
    repo.pytest("--impacted")
    quiet = repo.pytest("--impacted-explain", "tests/test_a.py")
    assert "tests/test_a.py does not run: it reaches 2 other files, and none of them changed" in quiet.stdout
    done = repo.edit("p/a.py").pytest("--impacted-explain", "tests/test_a.py::test_g")
    assert done.stdout.splitlines()[:2] == [
        "tests/test_a.py::test_g runs: p/a.py was modified",
        "  tests/test_a.py imports p/a.py",
    ]
    assert ran(done) == {}


def test_wrong_use_says_what_to_do(make) -> None:
    repo = make(PROJECT)
    nowhere = repo.pytest("--impacted", "--base", "nowhere")
    assert nowhere.returncode == 4
    assert "no commit 'nowhere'" in nowhere.stderr
    assert repo.pytest("--base", "HEAD").returncode == 4
    unknown = repo.pytest("--impacted-explain", "tests/test_aa.py")
    assert "did you mean 'tests/test_a.py'" in unknown.stderr


def test_git_is_never_told_anything(make) -> None:
    repo = make(PROJECT).edit("p/a.py")
    index = (repo.root / ".git/index").read_bytes()
    repo.pytest("--impacted")
    assert (repo.root / ".git/index").read_bytes() == index
    assert repo.git("status", "--porcelain").split() == ["M", "p/a.py"]


def test_a_directory_that_cannot_be_written_is_said_and_everything_runs(make) -> None:
    repo = make(PROJECT).write({".proveout/impacted": "a file in the way"})
    for _ in range(2):
        done = repo.pytest("--impacted")
        assert set(ran(done)) == A | B
        assert "outcomes could not be saved" in done.stdout


def test_a_session_below_the_top_of_the_repository(make) -> None:
    repo = make({f"sub/{name}": text for name, text in PROJECT.items()} | {"sub/pytest.ini": "[pytest]\n"})
    below, path = repo.root / "sub", str(repo.root / "sub")
    assert set(ran(repo.pytest("--impacted", cwd=below, PYTHONPATH=path + os.pathsep + SOURCES))) == A | B
    repo.edit("sub/p/b.py")
    assert set(ran(repo.pytest("--impacted", cwd=below, PYTHONPATH=path + os.pathsep + SOURCES))) == B


SOURCES = os.environ.get("PYTHONPATH", "")


def test_outside_git_content_is_hashed_all_the_same(make, tmp_path) -> None:
    repo = make(PROJECT)
    subprocess.run(["rm", "-rf", str(repo.root / ".git")], check=True)
    ceiling = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    assert set(ran(repo.pytest("--impacted", **ceiling))) == A | B
    assert set(ran(repo.edit("p/b.py").pytest("--impacted", **ceiling))) == B
