"""Checkouts, submodules, the vendored Bridge, the container's fingerprint: on real git trees."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from tests.preflight import trees
from tests.preflight.conftest import Find, proveout

from proveout.domain.finding import Severity
from proveout.domain.verdict import Verdict
from proveout.preflight.checks.container import fingerprint

VENDORED = "3rdparty/Megatron-Bridge-workspace/Megatron-Bridge"


@pytest.fixture
def bridge(tmp_path: Path) -> Path:
    """A Bridge repository with Megatron-LM as a real submodule."""
    trees.package(tmp_path / "lm", "megatron.core")
    trees.repository(tmp_path / "lm")
    root = tmp_path / "bridge"
    trees.package(root / "src", "megatron.bridge", "MARK = 1\n")
    trees.repository(root)
    trees.git(root, "submodule", "add", "-q", str(tmp_path / "lm"), "3rdparty/Megatron-LM")
    trees.git(root, "commit", "-q", "-m", "with core")
    return root


@pytest.fixture
def nemo_rl(tmp_path: Path, bridge: Path) -> Path:
    """A NeMo-RL repository that vendors that Bridge as a real submodule."""
    root = tmp_path / "nemo-rl"
    trees.package(root, "nemo_rl")
    (root / "pyproject.toml").write_text('[project]\nname = "nemo-rl"\nversion = "1"\n')
    (root / "uv.lock").write_text("version = 1\n")
    trees.repository(root)
    trees.git(root, "submodule", "add", "-q", str(bridge), VENDORED)
    trees.git(root, "commit", "-q", "-m", "with bridge")
    return root


def test_a_checkout_that_is_something_else_blocks(find: Find, tmp_path: Path, bridge: Path) -> None:
    (absent,) = find("checkouts", checkouts={"bridge": str(tmp_path / "nowhere")})
    assert absent.decides is Verdict.BLOCKED and "not a directory" in absent.what
    (other,) = find("checkouts", checkouts={"verl": str(bridge)})
    assert "holds no verl/__init__.py" in other.what
    assert find("checkouts", checkouts={"bridge": str(bridge)}) == ()


def test_an_empty_submodule_warns_and_a_filled_one_is_silent(
    find: Find, tmp_path: Path, bridge: Path
) -> None:
    assert find("submodules", checkouts={"bridge": str(bridge)}) == ()
    trees.git(tmp_path, "clone", "-q", str(bridge), str(tmp_path / "shallow"))
    (empty,) = find("submodules", checkouts={"bridge": str(tmp_path / "shallow")})
    assert empty.severity is Severity.WARNING and "silently takes megatron.core" in empty.what


def test_a_submodule_at_another_commit_warns(find: Find, bridge: Path) -> None:
    core = bridge / "3rdparty" / "Megatron-LM"
    pinned = trees.git(core, "rev-parse", "HEAD")
    trees.git(core, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    (moved,) = find("submodules", checkouts={"bridge": str(bridge)})
    assert moved.id == "preflight.submodules.moved" and pinned[:9] in moved.what


def test_vendored_drift_is_counted_and_named(find: Find, nemo_rl: Path, bridge: Path) -> None:
    checkouts = {"nemo-rl": str(nemo_rl), "bridge": str(bridge)}
    assert find("vendored", checkouts=checkouts) == ()
    source = bridge / "src" / "megatron" / "bridge"
    (source / "__init__.py").write_text("MARK = 2\n")
    (source / "new.py").write_text("")
    (nemo_rl / VENDORED / "src" / "megatron" / "bridge" / "old.py").write_text("")
    (drift,) = find("vendored", checkouts=checkouts)
    assert "1 files differ, 1 files are only in the Bridge under test, 1 files are only in the" in drift.what
    assert [cited.text for cited in drift.evidence] == ["__init__.py", "new.py", "old.py"]


def test_the_same_tree_by_two_names_is_silent(find: Find, nemo_rl: Path) -> None:
    assert find("vendored", checkouts={"nemo-rl": str(nemo_rl), "bridge": str(nemo_rl / VENDORED)}) == ()


def test_the_container_fingerprint_is_compared(find: Find, nemo_rl: Path, tmp_path: Path) -> None:
    file = tmp_path / "fingerprint"
    fields = {
        "loops": ("nemo-rl",),
        "checkouts": {"nemo-rl": str(nemo_rl)},
        "env": {"NRL_CONTAINER": "1"},
        "settings": {"container.fingerprint": str(file)},
    }
    assert find("container", **fields)[0].id == "preflight.container.no-fingerprint"
    file.write_text(json.dumps(fingerprint(str(nemo_rl))))
    assert find("container", **fields) == ()

    (nemo_rl / "uv.lock").write_text("version = 2\n")
    (nemo_rl / VENDORED / "dirty.py").write_text("")
    mismatch, dirty = find("container", **fields)
    assert mismatch.severity is Severity.WARNING and "uv.lock" in mismatch.what
    assert hashlib.md5(b"version = 2\n").hexdigest() in mismatch.evidence[0].text
    assert dirty.id == "preflight.container.dirty-submodule"
    assert (
        find("container", **{**fields, "env": {"NRL_CONTAINER": "1", "NRL_FORCE_REBUILD_VENVS": "true"}})
        == ()
    )
    assert find("container", **{**fields, "env": {}}) == ()


def test_the_fingerprint_is_that_of_nemo_rl(nemo_rl: Path) -> None:
    """Its keys and hashes as NeMo-RL's own tool gives them: two MD5 sums and the submodules' commits."""
    assert fingerprint(str(nemo_rl)) == {
        "pyproject.toml": hashlib.md5((nemo_rl / "pyproject.toml").read_bytes()).hexdigest(),
        "uv.lock": hashlib.md5(b"version = 1\n").hexdigest(),
        f"submodules/{VENDORED}": trees.git(nemo_rl / VENDORED, "rev-parse", "HEAD"),
    }


def test_a_token_in_a_remote_is_said_and_not_shown(find: Find, bridge: Path) -> None:
    assert find("secrets", checkouts={"bridge": str(bridge)}) == ()
    trees.git(bridge, "remote", "add", "origin", "https://me:s3cretpassword@example.org/x.git")
    (finding,) = find("secrets", checkouts={"bridge": str(bridge)})
    assert finding.where.key == "remote.origin.url" and "s3cret" not in repr(finding)


@pytest.mark.parametrize("kind", ["plain directory", "bare", "no commit", "broken .git"])
def test_odd_trees_give_findings_and_no_traceback(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    (root / ".gitmodules").write_text('[submodule "x"]\n\tpath = 3rdparty/Megatron-LM\n\turl = x\n')
    if kind == "bare":
        trees.git(root, "init", "-q", "--bare")
    elif kind == "no commit":
        trees.git(root, "init", "-q")
    elif kind == "broken .git":
        (root / ".git").write_text("gitdir: /nowhere/at/all\n")
    done = proveout("doctor", "--bridge", str(root), "--json", "--only", "checkouts", "--only", "submodules")
    found = {finding["id"] for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert found >= {"preflight.checkouts.not-it"} and any("submodules" in name for name in found)


def test_a_checkout_is_byte_identical_afterwards(tmp_path: Path, nemo_rl: Path, bridge: Path) -> None:
    def state(root: Path) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    for root in (bridge, nemo_rl / VENDORED):  # a stale index, which git likes to refresh
        os.utime(root / "src" / "megatron" / "bridge" / "__init__.py", (1e9, 1e9))
    (tmp_path / "print").write_text("{}")
    before = {**state(nemo_rl), **state(bridge)}
    words = ["--bridge", str(bridge), "--nemo-rl", str(nemo_rl), "--loop", "nemo-rl", "--loop", "verl"]
    words += ["--set", f"container.fingerprint={tmp_path / 'print'}", "--set", "probe.real_import=yes"]
    proveout("doctor", *words, env={"NRL_CONTAINER": "1", "HOME": str(tmp_path)})
    assert {**state(nemo_rl), **state(bridge)} == before
