"""Declared marks: what runs, what is left out, and that neither happens silently."""

from __future__ import annotations

import pytest

MARKED = """
    import pytest

    def test_plain(): pass
    @pytest.mark.slow
    def test_slow(): pass
    @pytest.mark.hf_gated
    def test_gated(): pass
    @pytest.mark.mcore
    def test_mcore(): pass
    @pytest.mark.mcore
    @pytest.mark.hf_gated
    def test_mcore_gated(): pass
    @pytest.mark.vllm
    @pytest.mark.parametrize("n", [1, 2])
    def test_vllm(n): pass
    @pytest.mark.run_first
    def test_first(): pass
"""
CONFIG = """
    [pytest]
    proveout_marks = nemo-rl
    addopts = -p no:cacheprovider --strict-markers
    pythonpath = packages
    markers = slow
"""


@pytest.fixture
def marked(project):
    """A project whose tests carry NeMo-RL's marks, in an environment that has megatron.core and no vllm."""
    project.write("pytest.ini", CONFIG)
    project.write("tests/unit/test_marked.py", MARKED)
    project.write("packages/megatron/core/__init__.py", "")
    return project


def names(project, *arguments: str) -> list[str]:
    """The tests that ran, in order."""
    done = project.run("-v", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2].split(" ")[0] for line in done.stdout.splitlines() if line.endswith("%]")]


@pytest.mark.parametrize(
    ("flags", "ran"),
    [
        ([], ["test_first", "test_plain", "test_slow"]),
        (["--hf-gated"], ["test_first", "test_plain", "test_slow", "test_gated"]),
        (["--mcore-only"], ["test_mcore"]),
        (["--mcore-only", "--hf-gated"], ["test_mcore", "test_mcore_gated"]),
    ],
)
def test_the_four_documented_configurations(marked, flags, ran):
    assert names(marked, *flags) == ran


def test_the_flags_work_with_workers_and_from_addopts(marked):
    marked.write("pytest.ini", CONFIG.replace("--strict-markers", "--strict-markers --mcore-only"))
    done = marked.run("-n", "2", "--hf-gated", "-v")

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "left out 4, because they do not carry the mark mcore (--mcore-only was given)" in done.stdout
    assert "left out 2, because they carry the mark vllm (add --vllm-only)" in done.stdout


@pytest.mark.parametrize(
    ("expression", "ran"),
    [
        ("mcore", ["test_mcore"]),
        ("mcore and hf_gated", ["test_mcore_gated"]),
        ("not slow", ["test_first", "test_plain"]),
        ("not mcore and not vllm", ["test_first", "test_plain", "test_slow"]),
    ],
)
def test_m_selects_what_it_says_and_leaves_the_rule_of_other_marks(marked, expression, ran):
    assert names(marked, "-m", expression) == ran


def test_k_narrows_the_configuration(marked):
    assert names(marked, "-k", "plain or mcore") == ["test_plain"]
    assert names(marked, "--mcore-only", "-k", "core and not gated") == ["test_mcore"]


def test_k_that_matches_only_what_is_left_out_says_so_and_is_no_success(marked):
    done = marked.run("-k", "test_mcore and not gated")

    assert done.returncode == 5
    assert "left out 1, because they carry the mark mcore (add --mcore-only)" in done.stdout
    assert "no test ran, so nothing has passed" in done.stdout


def test_a_test_that_is_named_runs(marked):
    assert names(marked, "tests/unit/test_marked.py::test_mcore_gated") == ["test_mcore_gated"]


def test_a_flag_whose_package_is_missing_is_a_clear_error(marked):
    done = marked.run("--vllm-only")

    assert done.returncode == 4
    assert "--vllm-only: its package vllm is not installed here; run: uv run --extra vllm" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("asked", [["-m", "vllm"], ["tests/unit/test_marked.py::test_vllm"]])
def test_a_marked_test_whose_package_is_missing_fails_clearly_however_it_was_selected(marked, asked):
    done = marked.run(*asked)

    assert done.returncode == 1
    assert "2 errors" in done.stdout
    assert "marked vllm, but its package vllm is not installed here" in done.stdout


def test_two_exclusive_flags_are_refused(marked):
    done = marked.run("--mcore-only", "--vllm-only")

    assert done.returncode == 4
    assert "--mcore-only and --vllm-only exclude each other" in done.stderr


def test_a_test_with_two_exclusive_marks_is_reported(marked):
    marked.write(
        "tests/unit/test_two.py",
        "import pytest\npytestmark = pytest.mark.sglang\n@pytest.mark.mcore\ndef test_two(): pass\n",
    )
    done = marked.run()

    assert done.returncode == 0
    assert "test_two carries mcore and sglang, which exclude each other" in done.stdout
    assert done.stdout.count("exclude each other") == 1


def test_a_project_declares_its_own_marks(project):
    project.write("tests/unit/test_own.py", "import pytest\n@pytest.mark.tpu\ndef test_tpu(): pass\n")
    project.write(
        "pyproject.toml",
        """
        [tool.pytest.ini_options]
        addopts = "-p no:cacheprovider --strict-markers"

        [tool.proveout.marks.tpu]
        about = "tests that need a TPU"
        include = "--with-tpu"
        """,
    )
    (project.root / "pytest.ini").unlink()

    assert project.run().returncode == 5
    assert project.run("--with-tpu").returncode == 0
    assert "--with-tpu " in project.run("--help").stdout
    assert "tests that need a TPU" in project.run("--markers").stdout


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.proveout.marks.tpu]\nonyl = '--tpu-only'", "did you mean 'only'"),
        ("[tool.proveout.marks.tpu]\nonly = 'tpu'", "flag 'tpu' does not begin with '--'"),
        ("[tool.proveout.marks.tpu]\nonly = '--a'\ninclude = '--b'", "has both 'only' and 'include'"),
        ("[tool.proveout]\nmarks = 3 # tool.proveout.marks", "needs a table"),
    ],
)
def test_a_wrong_declaration_is_a_sentence_that_says_where(project, table, said):
    project.write("pyproject.toml", table)
    done = project.run()

    assert done.returncode == 4
    assert said in done.stderr
    assert "tool.proveout.marks" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_preset_names_the_nearest(project):
    project.write("pytest.ini", "[pytest]\nproveout_marks = nemorl\n")
    done = project.run()

    assert done.returncode == 4
    assert "did you mean 'nemo-rl'" in done.stderr


CONFTEST = """
    def pytest_addoption(parser):
        parser.addoption("--hf-gated", action="store_true", default=False)

    def pytest_collection_modifyitems(config, items):
        assert config.getoption("--hf-gated") is {expected}
"""


@pytest.mark.parametrize("at", ["conftest.py", "tests/unit/conftest.py"])
@pytest.mark.parametrize("flags", [[], ["--hf-gated"]])
def test_a_conftest_may_own_the_same_flag_whether_it_loads_early_or_late(marked, at, flags):
    marked.write(at, CONFTEST.format(expected=bool(flags)))

    ran = names(marked, *flags)

    assert ("test_gated" in ran) is bool(flags)


def test_without_declared_marks_the_flags_are_unknown(project):
    project.write("tests/unit/test_plain.py", "def test_plain(): pass\n")
    done = project.run("--hf-gated")

    assert done.returncode == 4
    assert "unrecognized arguments: --hf-gated" in done.stderr
