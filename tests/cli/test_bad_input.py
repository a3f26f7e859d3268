"""Wrong words and wrong machines: one sentence with the remedy, the right exit status, nothing started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Answer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rnu",), "did you mean 'run'"),
        (("run", "--lvel", "0"), "--level"),
        (("run", "--level", "x"), "names no level"),
        (("run", "--level", "7"), "no level 7"),
        (("run", "--loop", "bnech"), "did you mean 'bench'"),
        (("run", "max_step=3"), "max_steps"),
        (("run", "lr=fast"), "lr"),
        (("run", "lr"), "lr"),
        (("run", "--scheduler", "slrum"), "no scheduler"),
        (("report", "--format", "txet"), "did you mean 'text'"),
        (("report", "nothing"), "no run 'nothing'"),
        (("resume",), "no run 'latest'"),
    ],
)
def test_wrong_usage_is_exit_2_and_starts_nothing(
    proveout: Callable[..., Answer], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    answer = proveout(*arguments)
    assert answer.status == 2
    assert said in answer.err
    assert answer.out == ""
    assert not (tmp_path / ".proveout").exists()


def test_a_directory_that_is_no_model_says_what_is_missing(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "model").mkdir()
    answer = proveout("run", "--model", str(tmp_path / "model"))
    assert answer.status == 2
    assert "config.json" in answer.err
    assert not (tmp_path / ".proveout").exists()


def test_a_state_directory_that_cannot_be_made_is_blocked(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    answer = proveout("run", "--state-dir", str(tmp_path / "file" / "state"))
    assert answer.status == 3
    assert "--state-dir" in answer.err


def test_a_missing_bench_extra_is_blocked_with_the_remedy(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    hidden = tmp_path / "hide"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    paths = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    answer = proveout("run", "--level", "0", env={"PYTHONPATH": paths})
    assert answer.status == 3, answer.out + answer.err
    assert "Result: Blocked" in answer.out
    assert "bench" in answer.out
    assert "no evidence against the change" in answer.out


def test_a_dry_run_starts_nothing(proveout: Callable[..., Answer], tmp_path: Path) -> None:
    answer = proveout("run", "--dry-run", "--json")
    assert answer.status == 0
    assert [step["coverage"]["level"] for step in answer.json["steps"]] == [0, 6]
    assert not (tmp_path / ".proveout").exists()
