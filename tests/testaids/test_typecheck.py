"""``proveout typecheck``: the checkout's own checker, with real mypy, and answers of the other checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proveout.cli.main import run
from proveout.domain.errors import UsageError
from proveout.testaids.environment import interpreter, of_checkout
from proveout.testaids.typecheck.check import typecheck_command
from proveout.testaids.typecheck.checkers import CHECKERS
from proveout.testaids.typecheck.find import find_configured

WRONG = "def twice(x: int) -> int:\n    return x * 2\n\n\nlength: str = twice(3)\n"
RIGHT = "length: int = 3\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "mypy.ini").write_text("[mypy]\ncache_dir = /dev/null\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "wrong.py").write_text(WRONG)
    (tmp_path / "examples" / "right.py").write_text(RIGHT)
    return tmp_path


def check(capsys, *words: str) -> tuple[int, dict]:
    status = run(["typecheck", "--json", *words])
    out = capsys.readouterr().out
    return status, json.loads(out) if out else {}


def test_an_error_is_a_finding_with_file_and_line(tree, capsys):
    status, answer = check(capsys, str(tree / "examples" / "wrong.py"))

    assert (status, answer["verdict"]) == (1, "Fail")
    [finding] = answer["checks"][0]["findings"]
    assert finding["where"] == {"file": "examples/wrong.py", "line": 5}
    assert finding["id"] == "typecheck.mypy.assignment"
    assert finding["severity"] == "error"


def test_a_file_without_errors_passes_and_the_line_says_what_was_done(tree, capsys):
    status = run(["typecheck", str(tree / "examples" / "right.py"), "--python", sys.executable])

    assert status == 0
    assert capsys.readouterr().out == (
        f"Pass: mypy, 0 errors in 1 files (mypy.ini, the environment of {sys.executable})\n"
    )


def test_the_checkouts_configuration_is_followed(tree, capsys):
    (tree / "loose.py").write_text("def f(x):\n    return x\n")
    assert check(capsys, str(tree / "loose.py"))[0] == 0
    (tree / "mypy.ini").write_text("[mypy]\ncache_dir = /dev/null\nstrict = True\n")
    assert check(capsys, str(tree / "loose.py"))[0] == 1


def test_a_syntax_error_fails(tree, capsys):
    (tree / "cut.py").write_text("def f(:\n")
    status, answer = check(capsys, str(tree / "cut.py"))
    assert status == 1
    assert {finding["id"] for finding in answer["checks"][0]["findings"]} == {"typecheck.mypy.syntax"}


def test_a_broken_configuration_is_no_pass(tree, capsys):
    (tree / "mypy.ini").write_text(
        "[mypy]\ncache_dir = /dev/null\npython_version = banana\nplugins = none_such\n"
    )
    status = run(["typecheck", str(tree / "examples" / "right.py")])
    assert status in (1, 3)


def test_a_checker_that_is_not_installed_is_blocked(tree, capsys):
    (tree / "pyrefly.toml").write_text("")
    status = run(["typecheck", str(tree / "examples" / "right.py"), "--python", sys.executable])

    assert status == 3
    assert "pyrefly gave no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "checker"),
    [
        ("pyrefly.toml", "", "pyrefly"),
        ("pyrightconfig.json", "{}", "pyright"),
        ("mypy.ini", "[mypy]", "mypy"),
        (".mypy.ini", "[mypy]", "mypy"),
        ("pyproject.toml", "[tool.pyrefly]", "pyrefly"),
        ("pyproject.toml", "[tool.mypy]", "mypy"),
        ("setup.cfg", "[mypy]\n", "mypy"),
    ],
)
def test_the_configured_checker_is_found(tmp_path, file, text, checker):
    (tmp_path / file).write_text(text)
    (tmp_path / "src").mkdir()
    found = find_configured(tmp_path / "src" / "a.py")
    assert (found.checker.name, found.config) == (checker, tmp_path / file)


def test_the_nearest_configuration_wins_and_an_own_file_comes_before_pyproject(tmp_path):
    (tmp_path / "mypy.ini").write_text("[mypy]")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.mypy]\n[tool.pyrefly]\n")
    (inner / "pyrefly.toml").write_text("")
    assert find_configured(inner / "a.py").config == inner / "pyrefly.toml"
    assert find_configured(inner / "a.py", "mypy").config == inner / "pyproject.toml"
    assert find_configured(tmp_path / "a.py").config == tmp_path / "mypy.ini"


def test_without_a_configuration_nothing_is_checked(tmp_path):
    with pytest.raises(UsageError, match="no type checker is configured") as raised:
        find_configured(tmp_path / "a.py", "pyrefly")
    assert "pyrefly.toml" in raised.value.remedy


@pytest.mark.parametrize("name", ["missing.py", "notes.txt"])
def test_what_is_no_python_file_is_refused(tree, capsys, name):
    (tree / "notes.txt").write_text("")
    assert run(["typecheck", str(tree / name)]) == 2
    assert "is no Python file that exists" in capsys.readouterr().err


def test_files_of_two_configurations_are_checked_by_each(tree, capsys):
    other = tree / "other"
    other.mkdir()
    (other / "mypy.ini").write_text("[mypy]\ncache_dir = /dev/null\n")
    (other / "a.py").write_text(WRONG)
    status, answer = check(capsys, str(tree / "examples" / "right.py"), str(other / "a.py"))
    assert status == 1
    assert [each["verdict"] for each in answer["checks"]] == ["Pass", "Fail"]


PYREFLY = """{"errors": [{"line": 2, "column": 12, "path": "bad.py", "code": -2, "name": "bad-return",
"description": "Returned type is not assignable", "concise_description": "Returned type", "severity": "error"}]}"""
PYRIGHT = """{"version": "1.1.400", "generalDiagnostics": [{"file": "/x/bad.py", "severity": "warning",
"message": "is not accessed", "range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 5}},
"rule": "reportUnused"}], "summary": {"errorCount": 0}}"""


def test_the_answers_of_the_other_checkers_are_read():
    [pyrefly] = CHECKERS["pyrefly"].read(PYREFLY)
    assert (pyrefly.id, str(pyrefly.where), pyrefly.severity) == (
        "typecheck.pyrefly.bad-return",
        "bad.py:2",
        "error",
    )
    [pyright] = CHECKERS["pyright"].read(PYRIGHT)
    assert (pyright.id, str(pyright.where), pyright.severity) == (
        "typecheck.pyright.reportUnused",
        "/x/bad.py:2",
        "warning",
    )


@pytest.mark.parametrize("name", list(CHECKERS))
def test_an_answer_that_cannot_be_read_is_an_error(name):
    with pytest.raises((ValueError, KeyError)):
        CHECKERS[name].read("Traceback (most recent call last):")


def test_uv_is_used_with_the_group_that_has_the_checker(tmp_path, program):
    program("uv", "true")
    (tmp_path / "uv.lock").write_text("")
    (tmp_path / "pyrefly.toml").write_text("")
    (tmp_path / "pyproject.toml").write_text(
        '[dependency-groups]\ntest = ["pytest>=8"]\ndev = ["pyrefly==0.24.2"]\n'
    )
    environment = of_checkout(tmp_path, "pyrefly")
    assert environment is not None
    command = typecheck_command(find_configured(tmp_path / "a.py"), [tmp_path / "a.py"], environment)
    assert list(command.argv) == [
        "uv", "run", "--group", "dev", "pyrefly", "check", "--output-format", "json",
        "--config", str(tmp_path / "pyrefly.toml"), "a.py",
    ]  # fmt: skip
    assert command.cwd == str(tmp_path)


def test_a_virtual_environment_of_the_checkout_is_used_without_uv(tmp_path):
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert of_checkout(tmp_path, "mypy") == interpreter(str(python))
    assert of_checkout(tmp_path / "elsewhere", "mypy") is None


def test_the_command_does_not_see_modules_beside_the_files(tree):
    (tree / "json.py").write_text("raise RuntimeError('a module of the checkout hides the standard one')\n")
    (tree / "examples" / "right.py").write_text(RIGHT)
    found = find_configured(tree / "examples" / "right.py")
    command = typecheck_command(found, [tree / "examples" / "right.py"], interpreter(sys.executable))
    assert subprocess.run(command.argv, cwd=command.cwd, check=False).returncode == 0
