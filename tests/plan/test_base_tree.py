"""The tree of another commit is made beside the run, and the checkout stays as it is to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plan.conftest import committed, digest, git

from proveout.domain.errors import BlockedError, UsageError
from proveout.plan.base_tree import commit_of, make_tree


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two commits, a submodule whose pin moved between them, and changes that are in no commit."""
    inner = committed(tmp_path / "inner", {"core.py": "X = 1\n"})
    root = committed(tmp_path / "repo", {"a.py": "one\n", "only_before.py": ""})
    git(root, "submodule", "add", "-q", str(inner), "lib/core")
    git(root, "commit", "-q", "-m", "two")
    core = root / "lib/core"
    (core / "core.py").write_text("X = 2\n")
    git(core, "commit", "-q", "-a", "-m", "other")
    (root / "a.py").write_text("three\n")
    git(root, "rm", "-q", "only_before.py")
    git(root, "commit", "-q", "-a", "-m", "three")
    (root / "a.py").write_text("dirty\n")
    (root / "new.py").write_text("untracked\n")
    return root


def test_the_tree_is_that_of_the_commit_with_its_submodule_and_the_checkout_stays(
    repo: Path, tmp_path: Path
) -> None:
    before = digest(repo)
    tree = make_tree(repo, commit_of(repo, "HEAD~1"), tmp_path / "run/base")
    assert (tree / "a.py").read_text() == "one\n" and (tree / "only_before.py").exists()
    assert (tree / "lib/core/core.py").read_text() == "X = 1\n"
    assert not (tree / "new.py").exists()
    assert digest(repo) == before
    now = make_tree(repo, commit_of(repo, "main"), tmp_path / "run/now")
    assert (now / "a.py").read_text() == "three\n" and (now / "lib/core/core.py").read_text() == "X = 2\n"
    assert digest(repo) == before and {p.name for p in (tmp_path / "run").iterdir()} == {"base", "now"}


def test_a_tree_that_is_there_is_used(repo: Path, tmp_path: Path) -> None:
    tree = make_tree(repo, commit_of(repo, "HEAD"), tmp_path / "base")
    (tree / "mark").touch()
    assert (make_tree(repo, commit_of(repo, "HEAD"), tmp_path / "base") / "mark").exists()


def test_a_checkout_that_is_a_worktree_of_another_repository(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "second"), "HEAD")
    before = digest(repo)
    tree = make_tree(tmp_path / "second", commit_of(tmp_path / "second", "HEAD~1"), tmp_path / "base")
    assert (tree / "a.py").read_text() == "one\n" and digest(repo) == before


def test_a_submodule_that_is_not_initialised_stays_empty(repo: Path, tmp_path: Path) -> None:
    git(repo, "submodule", "deinit", "-q", "-f", "lib/core")
    tree = make_tree(repo, commit_of(repo, "HEAD~1"), tmp_path / "base")
    assert list((tree / "lib/core").iterdir()) == []


def test_what_cannot_be_made_leaves_nothing(repo: Path, tmp_path: Path) -> None:
    commit = commit_of(repo, "HEAD~1")
    pinned = git(repo, "rev-parse", f"{commit}:lib/core").strip()
    objects = repo / ".git/modules/lib/core/objects"
    lost = objects / pinned[:2] / pinned[2:]
    lost.unlink()
    with pytest.raises(BlockedError, match=f"the tree of commit {commit[:9]} cannot be made"):
        make_tree(repo, commit, tmp_path / "base")
    assert not list(tmp_path.glob("*base*"))


@pytest.mark.parametrize("revision", ["nowhere", "--all", "", "HEAD:a.py"])
def test_a_revision_that_is_no_commit(repo: Path, revision: str) -> None:
    with pytest.raises(UsageError, match="is no commit of this checkout"):
        commit_of(repo, revision)
