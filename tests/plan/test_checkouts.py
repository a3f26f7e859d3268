"""Checkouts as they are found: state, bad trees, and that nothing in them is ever written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proveout.domain.checkout import BRIDGE_IN_NEMO_RL, compose_pythonpath, import_roots
from proveout.domain.errors import UsageError
from proveout.plan import patch as patches
from proveout.plan.change import from_git
from proveout.plan.checkouts import inspect, locate
from proveout.plan.settings import read_settings
from proveout.plan.vendored import compare

Git = Callable[..., str]


def ids(findings: tuple[object, ...]) -> set[str]:
    return {finding.id for finding in findings}  # type: ignore[attr-defined]


def test_state_is_read_from_git(bridge: Path, run_git: Git) -> None:
    (bridge / "docs/readme.txt").write_text("changed\n")
    (bridge / "new file.py").write_text("x = 1\n")
    checkout, findings = inspect("bridge", str(bridge))
    assert checkout.commit == run_git(bridge, "rev-parse", "HEAD").strip()
    assert (checkout.branch, checkout.dirty, checkout.untracked) == (
        "main",
        ("docs/readme.txt",),
        ("new file.py",),
    )
    assert len(checkout.diff_hash) == 64
    assert findings == ()


def test_the_patch_applies_to_a_clean_tree_and_gives_the_dirty_one(
    bridge: Path, run_git: Git, tmp_path: Path
) -> None:
    (bridge / "docs/readme.txt").write_text("changed\n")
    (bridge / "added.py").write_text("x = 1\nno newline")
    (bridge / "empty.py").write_text("")
    data, large = patches.working_patch(
        bridge, run_git(bridge, "rev-parse", "HEAD").strip(), ["added.py", "empty.py"]
    )
    assert large == []
    run_git(tmp_path, "clone", "-q", str(bridge), "clean")
    subprocess.run(["git", "-C", str(tmp_path / "clean"), "apply", "-"], input=data, check=True)
    for name in ("docs/readme.txt", "added.py", "empty.py"):
        assert (tmp_path / "clean" / name).read_bytes() == (bridge / name).read_bytes()


def test_the_hash_changes_with_untracked_content(bridge: Path) -> None:
    (bridge / "new.py").write_text("x = 1\n")
    first = inspect("bridge", str(bridge))[0].diff_hash
    (bridge / "new.py").write_text("x = 2\n")
    assert inspect("bridge", str(bridge))[0].diff_hash != first


def test_a_tree_that_is_not_git_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "plain/src/megatron/bridge").mkdir(parents=True)
    checkout, findings = inspect("bridge", str(tmp_path / "plain"))
    assert checkout.commit == "" and ids(findings) == {"plan.checkout.not-git"}


def test_a_bare_repository_is_refused(bridge: Path, run_git: Git, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "-q", "--bare", str(bridge), "bare")
    with pytest.raises(UsageError, match="bare"):
        inspect("bridge", str(tmp_path / "bare"))


def test_shallow_and_detached_trees_are_named(bridge: Path, run_git: Git, tmp_path: Path) -> None:
    run_git(bridge, "commit", "-q", "--allow-empty", "-m", "two")
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{bridge}", "shallow")
    run_git(tmp_path / "shallow", "checkout", "-q", "--detach")
    checkout, findings = inspect("bridge", str(tmp_path / "shallow"))
    assert checkout.shallow and checkout.branch == ""
    assert ids(findings) == {"plan.checkout.shallow", "plan.checkout.detached"}


def test_an_interrupted_checkout_without_index_is_named(bridge: Path) -> None:
    (bridge / ".git/index").unlink()
    checkout, findings = inspect("bridge", str(bridge))
    assert ids(findings) == {"plan.checkout.no-index"}
    assert checkout.dirty == ()


def test_a_missing_object_is_a_finding(bridge: Path, run_git: Git) -> None:
    blob = run_git(bridge, "rev-parse", "HEAD:docs/readme.txt").strip()
    (bridge / ".git/objects" / blob[:2] / blob[2:]).unlink()
    (bridge / "docs/readme.txt").write_text("changed\n")
    assert "plan.checkout.unreadable" in ids(inspect("bridge", str(bridge))[1])


def test_a_huge_dirty_file_is_named_and_left_out(bridge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "LARGEST_DIRTY", 1000)
    (bridge / "huge.bin").write_bytes(b"x" * 5000)
    checkout, findings = inspect("bridge", str(bridge))
    assert ids(findings) == {"plan.checkout.huge-file"}
    data, large = patches.working_patch(bridge, checkout.commit, ["huge.bin"])
    assert large == ["huge.bin"] and len(data) < 500


def test_names_that_are_not_utf8_and_symlink_loops_do_no_harm(bridge: Path) -> None:
    (bridge / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    (bridge / "loop").symlink_to("loop")
    (bridge / "up").symlink_to("..")
    checkout, _ = inspect("bridge", str(bridge))
    assert set(checkout.untracked) == {"caf\\xe9.py", "loop", "up"}
    _, files = from_git("bridge", checkout, None)
    assert {file.path for file in files} == {"caf\\xe9.py", "loop", "up"}


def test_submodules_are_listed_with_their_state(
    bridge: Path, nemo: Path, run_git: Git, tmp_path: Path
) -> None:
    run_git(nemo, "submodule", "--quiet", "add", str(bridge), BRIDGE_IN_NEMO_RL)
    run_git(nemo, "commit", "-q", "-m", "pin")
    run_git(tmp_path, "clone", "-q", str(nemo), "fresh")
    there = inspect("nemo-rl", str(nemo))[0].submodules
    absent, findings = inspect("nemo-rl", str(tmp_path / "fresh"))
    assert [(item.path, item.state) for item in there] == [(BRIDGE_IN_NEMO_RL, "initialised")]
    assert [item.state for item in absent.submodules] == ["uninitialised"]
    assert ids(findings) == {"plan.checkout.submodule"}
    (nemo / BRIDGE_IN_NEMO_RL / "docs/readme.txt").write_text("dirty\n")
    assert inspect("nemo-rl", str(nemo))[0].submodules[0].state == "dirty"


def test_the_vendored_bridge_is_compared_file_by_file(bridge: Path, nemo: Path) -> None:
    vendored = nemo / BRIDGE_IN_NEMO_RL / "src/megatron/bridge"
    assert compare(str(bridge), str(nemo)).state == "missing"
    for path in (bridge / "src/megatron/bridge").rglob("*.py"):
        target = vendored / path.relative_to(bridge / "src/megatron/bridge")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert compare(str(bridge), str(nemo)).state == "same"
    (vendored / "peft/lora.py").write_text("X = 2\n")
    (vendored / "peft/theirs.py").write_text("")
    (bridge / "src/megatron/bridge/peft/ours.py").write_text("")
    drift = compare(str(bridge), str(nemo))
    assert (drift.state, drift.differs, drift.only_here, drift.only_there) == (
        "differs", ("peft/lora.py",), ("peft/ours.py",), ("peft/theirs.py",))  # fmt: skip


def test_the_change_is_the_difference_from_the_default_branch(bridge: Path, run_git: Git) -> None:
    base = run_git(bridge, "rev-parse", "HEAD").strip()
    run_git(bridge, "checkout", "-q", "-b", "feature")
    (bridge / "docs/readme.txt").write_text("committed\n")
    run_git(bridge, "commit", "-q", "-am", "two")
    (bridge / "src/megatron/bridge/peft/lora.py").write_text("X = 3\n")
    (bridge / "extra.py").write_text("new\n")
    commit, files = from_git("bridge", inspect("bridge", str(bridge))[0], None)
    assert commit == base
    assert {(file.path, file.status) for file in files} == {
        ("docs/readme.txt", "modified"),
        ("src/megatron/bridge/peft/lora.py", "modified"),
        ("extra.py", "added"),
    }
    assert next(file for file in files if file.path == "extra.py").lines == ("new",)
    _, since = from_git("bridge", inspect("bridge", str(bridge))[0], "HEAD")
    assert "docs/readme.txt" not in {file.path for file in since}


@pytest.mark.parametrize("base", ["no-such-branch", "--output=/tmp/x", "HEAD~99"])
def test_a_base_that_is_no_revision_is_refused(base: str, bridge: Path) -> None:
    with pytest.raises(UsageError, match="revision"):
        from_git("bridge", inspect("bridge", str(bridge))[0], base)


def test_no_program_named_by_the_tree_is_run(bridge: Path, run_git: Git, tmp_path: Path) -> None:
    spy = tmp_path / "spy.sh"
    spy.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    spy.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager"):
        run_git(bridge, "config", key, str(spy))
    (bridge / "docs/readme.txt").write_text("changed\n")
    checkout, _ = inspect("bridge", str(bridge))
    from_git("bridge", checkout, None)
    assert not (tmp_path / "ran").exists()


def test_flags_win_over_the_environment_and_that_over_the_file(
    bridge: Path, tmp_path: Path, nemo: Path
) -> None:
    (tmp_path / "proveout.toml").write_text(f'[checkouts]\nbridge = "{tmp_path}/gone"\nnemo-rl = "nemo"\n')
    settings = read_settings(tmp_path)
    found = locate({"bridge": None}, {"BRIDGE_REPO": str(bridge)}, settings)
    assert found == {"bridge": str(bridge), "nemo-rl": str(nemo)}
    with pytest.raises(UsageError, match="does not exist"):
        locate({}, {}, settings)


def test_a_settings_file_that_is_wrong_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "proveout.toml").write_text('[checkouts]\nbrigde = "x"\n')
    with pytest.raises(UsageError, match="did you mean 'bridge'"):
        read_settings(tmp_path)


@pytest.mark.parametrize("value", ["gone", "file.txt", "loop", "nemo"])
def test_a_path_that_is_no_such_checkout_is_refused(value: str, tmp_path: Path, nemo: Path) -> None:
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UsageError):
        locate({"bridge": str(tmp_path / value)}, {}, {})


def test_the_import_path_has_the_trees_first_and_no_empty_entry() -> None:
    roots = import_roots({"bridge": "/b", "nemo-rl": "/n"}, "nemo-rl")
    assert compose_pythonpath(roots, ":/old::/b/src:") == "/b/src:/b/3rdparty/Megatron-LM:/n:/old"
    assert compose_pythonpath(import_roots({"bridge": "/b", "mcore": "/m"}, "verl"), "") == "/b/src:/m"
