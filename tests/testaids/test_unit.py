"""``proveout unit``: the right command, every argument whole, and no success without a passed test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proveout.cli.main import run
from proveout.testaids.configurations import CONFIGURATIONS, environment_of, unit_command
from proveout.testaids.unit import Counts, judge

MARKED = """
import pytest

def test_alpha_one(): pass
def test_alpha_two(): pass
@pytest.mark.mcore
def test_mcore(): pass
@pytest.mark.mcore
@pytest.mark.hf_gated
def test_mcore_gated(): pass
"""
CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--hf-gated", action="store_true")
    parser.addoption("--mcore-only", action="store_true")

def pytest_collection_modifyitems(config, items):
    def wanted(item):
        gated, mcore = (item.get_closest_marker(mark) is not None for mark in ("hf_gated", "mcore"))
        return mcore == config.getoption("--mcore-only") and (not gated or config.getoption("--hf-gated"))
    items[:] = [item for item in items if wanted(item)]
"""


@pytest.fixture
def marked(checkout: Path) -> Path:
    """A checkout whose own conftest has the flags, as NeMo-RL's has."""
    (checkout / "tests" / "unit" / "conftest.py").write_text(CONFTEST)
    (checkout / "tests" / "unit" / "test_marked.py").write_text(MARKED)
    (checkout / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['mcore', 'hf_gated']\n")
    return checkout


def unit(root: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict, str]:
    """Exit status, answer and pytest's own output of a run with this interpreter."""
    options = ["--repo", str(root), "--python", sys.executable, "--gpus", "0", "--json"]
    status = run(["unit", words[0], *options, "--", "-p", "no:cacheprovider", *words[1:]])
    lines = capfd.readouterr().out.splitlines()
    return status, json.loads(lines[-1]), "\n".join(lines[:-1])


@pytest.mark.parametrize(
    ("configuration", "passed"), [("default", 2), ("hf-gated", 2), ("mcore", 1), ("mcore-hf-gated", 2)]
)
def test_the_four_configurations(marked, capfd, configuration, passed):
    status, answer, _ = unit(marked, capfd, configuration)

    assert status == 0
    assert answer["verdict"] == "Pass"
    assert answer["counts"]["passed"] == passed


def test_an_argument_of_several_words_arrives_whole(marked, capfd):
    status, answer, shown = unit(marked, capfd, "default", "-k", "alpha and two", "-v")

    assert status == 0
    assert answer["counts"]["passed"] == 1
    assert "test_alpha_two PASSED" in shown


@pytest.mark.parametrize("place", ["tests/unit/test_marked.py", "unit/test_marked.py"])
def test_files_may_be_named_from_the_checkout_or_from_its_tests(marked, capfd, place):
    (marked / "tests" / "unit" / "test_other.py").write_text("def test_other(): assert False\n")
    assert unit(marked, capfd, "default", place)[0] == 0
    assert unit(marked, capfd, "default")[0] == 1


def test_no_test_is_no_success_and_the_right_configuration_is_named(marked, capfd):
    status, answer, _ = unit(marked, capfd, "default", "unit/test_marked.py", "-k", "mcore")

    assert status == 1
    assert answer["exit_status"] == 5
    assert answer["reason"] == "no test was run, so nothing has passed"
    assert answer["hint"] == "these tests are marked for: proveout unit mcore-hf-gated"


def test_a_run_of_skipped_tests_alone_is_no_success(marked, capfd):
    (marked / "tests" / "unit" / "test_skips.py").write_text("import pytest\ndef test_s(): pytest.skip()\n")
    status, answer, _ = unit(marked, capfd, "default", "unit/test_skips.py")

    assert (status, answer["verdict"]) == (3, "Skipped")


def test_failures_and_collection_errors_fail(marked, capfd):
    broken = marked / "tests" / "unit" / "test_broken.py"
    broken.write_text("def test_b(): assert False\n")
    assert unit(marked, capfd, "default")[:2][0] == 1
    broken.write_text("import a_module_that_is_missing\n")
    status, answer, _ = unit(marked, capfd, "default")
    assert (status, answer["verdict"], answer["exit_status"]) == (1, "Fail", 2)


def test_wrong_pytest_arguments_are_wrong_usage(marked, capfd):
    assert unit(marked, capfd, "default", "--no-such-option")[0] == 2


def test_the_users_own_junit_report_is_written_where_asked(marked, capfd):
    status, answer, _ = unit(marked, capfd, "default", "--junitxml=mine.xml")

    assert (status, answer["counts"]["passed"]) == (0, 2)
    assert (marked / "tests" / "mine.xml").is_file()


@pytest.mark.parametrize(
    ("status", "counts", "verdict"),
    [
        (0, (3, 0, 0, 1), "Pass"),
        (0, None, "Incomplete"),
        (0, (0, 0, 0, 0), "Skipped"),
        (0, (3, 1, 0, 0), "Fail"),
        (1, (3, 1, 0, 0), "Fail"),
        (1, (3, 0, 0, 0), "Fail"),
        (1, None, "Incomplete"),
        (2, (3, 0, 0, 0), "Incomplete"),
        (2, None, "Incomplete"),
        (5, (0, 0, 0, 0), "Fail"),
        (-9, None, "Incomplete"),
        (-9, (3, 0, 0, 0), "Incomplete"),
        (127, None, "Blocked"),
    ],
)
def test_only_passed_tests_and_a_clean_end_pass(status, counts, verdict):
    seen = None
    if counts is not None:
        passed, failed, errors, skipped = counts
        seen = Counts(passed=passed, failed=failed, errors=errors, skipped=skipped)
    assert judge(status, seen).verdict == verdict


@pytest.mark.parametrize(
    ("configuration", "argv"),
    [
        ("default", "uv run --group test pytest unit/"),
        ("hf-gated", "uv run --group test pytest unit/ --hf-gated"),
        ("mcore", "uv run --extra mcore --group test pytest unit/ --mcore-only"),
        ("mcore-hf-gated", "uv run --extra mcore --group test pytest unit/ --mcore-only --hf-gated"),
    ],
)
def test_the_commands_are_those_that_the_guide_documents(checkout, configuration, argv):
    chosen = CONFIGURATIONS[configuration]
    built = unit_command(checkout, chosen, [], environment_of(chosen, None), {})

    assert list(built.argv) == argv.split()
    assert built.cwd == str(checkout / "tests")
    assert built.env == {"PYTHONPATH": str(checkout)}


def test_a_value_that_looks_like_a_directory_is_no_place(checkout):
    chosen = CONFIGURATIONS["default"]
    built = unit_command(
        checkout, chosen, ["-k", "unit"], environment_of(chosen, None), {"PYTHONPATH": ":/a:"}
    )

    assert built.argv[-3:] == ("unit/", "-k", "unit")
    assert built.env["PYTHONPATH"] == f"{checkout}:/a"


def test_too_few_gpus_and_no_cluster_is_blocked_before_anything_runs(marked, program, capfd):
    program("nvidia-smi", 'echo "GPU 0: NVIDIA H100 (UUID: GPU-a)"')
    program("uv", 'echo "$@" >> "$0.log"; [ "$*" = "run --group test ray status" ] && exit 1; exit 0')
    status = run(["unit", "default", "--repo", str(marked)])

    assert status == 3
    assert "need 2 GPUs or a Ray cluster; here are 1 GPUs" in capfd.readouterr().err
    assert (program("x", "").parent / "uv.log").read_text().splitlines() == ["run --group test ray status"]


@pytest.mark.parametrize("gpus", [2, 0])
def test_with_gpus_or_a_cluster_the_tests_start(marked, program, capfd, gpus):
    program("nvidia-smi", "\n".join(f'echo "GPU {n}: NVIDIA H100"' for n in range(gpus)) or "true")
    program(
        "uv",
        f'[ "$*" = "run --group test ray status" ] && exit 0; shift 4; exec {sys.executable} -m pytest "$@"',
    )
    (marked / "tests" / "unit" / "test_seen.py").write_text(
        "import os\ndef test_seen(): assert os.environ.get('CUDA_VISIBLE_DEVICES') == "
        f"{'0,1' if gpus else None!r}\n"
    )
    assert run(["unit", "default", "--repo", str(marked), "--", "-p", "no:cacheprovider"]) == 0
    assert "Pass: unit tests, default: 3 passed" in capfd.readouterr().out


def test_a_missing_uv_is_blocked(marked, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["unit", "default", "--repo", str(marked), "--gpus", "0"]) == 3
    assert "uv is not there" in capfd.readouterr().err


def test_a_directory_that_is_no_checkout_is_refused(tmp_path, capfd):
    assert run(["unit", "default", "--repo", str(tmp_path)]) == 2
    assert "no tests/unit in it" in capfd.readouterr().err


def test_a_dry_run_prints_the_command_and_starts_nothing(marked, capfd):
    status = run(["unit", "mcore", "--repo", str(marked), "--dry-run", "--", "-k", "a and b"])
    shown = capfd.readouterr().out

    assert status == 0
    assert shown.startswith(f"cd {marked}/tests && PYTHONPATH={marked}")
    assert "uv run --extra mcore --group test pytest unit/ --mcore-only -k 'a and b'" in shown
