"""A matrix is planned as runs whose steps are told apart, and its commits are tested in fresh trees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Answer

from proveout.domain.errors import UsageError
from proveout.flow.matrix import Matrix, plan_matrix, read_matrix
from proveout.flow.planning import PlanRequest
from proveout.plan.trees import tree_at


def test_every_cell_has_steps_of_its_own_that_share_nothing(tmp_path: Path) -> None:
    matrix = Matrix(levels=("0", "1/lora-resume"), seeds=(3, 4), overrides=("max_steps=2",))
    [planned] = plan_matrix(matrix, PlanRequest(), tmp_path)
    steps = {step.id: step for step in planned.plan.steps}
    assert len(steps) == len(planned.plan.steps) and len(steps) % 2 == 0
    for step in steps.values():
        cell = step.id.rpartition("@")[2]
        assert cell in ("s3", "s4") and f"seed={cell[1:]}" in step.command.argv
        assert all(need in steps and need.endswith(f"@{cell}") for need in step.needs)
        assert step.coverage.variant.endswith(f"@{cell}")
        beside = [word for word in step.command.argv if "/../" in word]
        assert all(word.endswith(f"@{cell}") for word in beside)
        for criterion in step.criteria:
            if criterion.kind == "resume_parity":
                assert criterion.params["baseline"] in steps
    assert any("/../" in word for step in steps.values() for word in step.command.argv)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *identity, "-C", str(folder), *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "bridge"
    folder.mkdir()
    git(folder, "init", "-q")
    for word in ("one", "two"):
        (folder / "file").write_text(word)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", word)
    (folder / "file").write_text("not committed")
    return folder


def test_a_commit_gets_a_fresh_tree_and_its_checkout_stays_as_it_is(repository: Path, tmp_path: Path) -> None:
    before = git(repository, "rev-parse", "HEAD"), git(repository, "status", "--porcelain")
    tree = tree_at(str(repository), "bridge", "HEAD~1", tmp_path / "trees")
    assert (tree / "file").read_text() == "one"
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "status", "--porcelain")) == before
    assert (repository / "file").read_text() == "not committed"
    assert tree_at(str(repository), "bridge", "HEAD~1", tmp_path / "trees") == tree
    (tree / "file").write_text("somebody's work")
    with pytest.raises(UsageError, match="was changed"):
        tree_at(str(repository), "bridge", "HEAD~1", tmp_path / "trees")
    assert (tree / "file").read_text() == "somebody's work"
    with pytest.raises(UsageError):
        tree_at(str(repository), "bridge", "no-such-commit", tmp_path / "trees")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('model = ["a"]', "did you mean 'models'"),
        ("seeds = ['x']", "Expected `int`"),
        ("levels = [", "cannot be read"),
    ],
)
def test_a_wrong_matrix_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "matrix.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_matrix(file)
    assert str(file) in caught.value.where


def test_commits_need_the_checkout_of_their_role(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'bridge' need its checkout"):
        plan_matrix(Matrix(commits={"bridge": ("main",)}), PlanRequest(), tmp_path)


@pytest.mark.real
def test_a_matrix_runs_side_by_side_and_says_how_each_cell_ended(
    proveout: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "matrix.toml").write_text('levels = ["0"]\nseeds = [1, 2]\noverrides = ["max_steps=1"]\n')
    dry = proveout("run", "--matrix", "matrix.toml", "--dry-run")
    assert dry.status == 0 and dry.out.endswith("2 steps in 1 runs\n")
    answer = proveout("run", "--matrix", "matrix.toml", "--jobs", "2", "--json")
    [run] = json.loads(answer.out)
    assert sum(run["steps"].values()) == 2
    names = {path.name.rpartition("@")[2] for path in tmp_path.glob(".proveout/runs/*/attempts/*")}
    assert names == {"s1", "s2"}
