"""``proveout plan``: what is printed, what it exits with, and that the checkouts stay as they are."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proveout.cli.main import run
from proveout.domain.checkout import BRIDGE_IN_NEMO_RL, MCORE_IN_BRIDGE
from proveout.flow.planning import PlanRequest, make_plan

Git = Callable[..., str]
PEFT = "src/megatron/bridge/peft/lora.py"


@pytest.fixture
def plan(
    checkouts: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[int, str, str]]:
    """Runs ``proveout plan`` with all three checkouts; status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    flags = [word for role, path in checkouts.items() for word in (f"--{role}", path)]

    def call(*words: str) -> tuple[int, str, str]:
        status = run(["plan", *flags, *words])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture
def data(plan: Callable[..., tuple[int, str, str]]) -> Callable[..., dict[str, Any]]:
    """The JSON of a plan that is accepted."""

    def call(*words: str) -> dict[str, Any]:
        status, out, err = plan(*words, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)  # type: ignore[no-any-return]

    return call


def requested(found: dict[str, Any], loop: str) -> set[int]:
    return {item["level"] for item in found["levels"] if item["loop"] == loop and item["requested"]}


def test_the_json_has_what_is_published(data: Callable[..., dict[str, Any]]) -> None:
    found = data(PEFT)
    assert {
        "levels",
        "steps",
        "findings",
        "substitutions",
        "minutes",
        "gpu_hours",
        "checkouts",
    } <= found.keys()
    assert {"loop", "level", "requested", "reason", "paths"} <= found["levels"][0].keys()
    step = next(item for item in found["steps"] if item["id"] == "nemo-rl-L1-lora")
    assert {"loop", "level", "variant", "argv", "env", "cwd", "gpus", "minutes", "criteria"} <= step.keys()
    assert all({"id", "severity", "where", "what", "remedy"} <= item.keys() for item in found["findings"])
    assert requested(found, "nemo-rl") == {1, 6} and requested(found, "verl") == {0, 1, 5}
    left = [item for item in found["levels"] if not item["requested"]]
    assert {(item["loop"], item["level"]) for item in left} >= {("nemo-rl", 0), ("verl", 3)}
    assert all(item["reason"] for item in left)


def test_bridge_tests_come_first_and_a_gone_test_is_said(data: Callable[..., dict[str, Any]]) -> None:
    found = data(PEFT)
    first = found["steps"][0]
    assert first["id"] == "bridge-tests"
    assert first["argv"][9].startswith("--junitxml=")
    assert first["argv"][10:] == [
        "tests/unit_tests/models/test_model_provider_mixin.py",
        "tests/unit_tests/models/test_param_mapping.py",
        "tests/unit_tests/peft",
    ]
    assert any("test_integration.py does not exist" in text for text in found["substitutions"])


def test_the_documented_integration_test_is_used_where_it_exists(
    data: Callable[..., dict[str, Any]], bridge: Path, write_files: Callable[[Path, dict[str, str]], Path]
) -> None:
    write_files(bridge, {"tests/unit_tests/training/test_integration.py": ""})
    found = data(PEFT)
    assert "tests/unit_tests/training/test_integration.py" in found["steps"][0]["argv"]
    assert not any("test_integration" in text for text in found["substitutions"])


def test_the_change_is_read_from_git(data: Callable[..., dict[str, Any]], bridge: Path, run_git: Git) -> None:
    none = data()
    assert [item["id"] for item in none["findings"]].count("plan.change.none") == 1 and none["steps"] == []
    (bridge / "src/megatron/bridge/training/optim.py").write_text("X = 2\n")
    found = data()
    assert requested(found, "nemo-rl") == {0, 6} and requested(found, "verl") == {0, 5}
    assert found["checkouts"][0]["dirty"] == ["src/megatron/bridge/training/optim.py"]


def test_a_patch_names_the_change(data: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    path = "src/megatron/bridge/training/checkpointing.py"
    (tmp_path / "c.patch").write_text(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n")
    found = data("--patch", "c.patch")
    assert requested(found, "nemo-rl") == {1} and requested(found, "verl") == {1}


def test_levels_replace_and_added_ones_join(data: Callable[..., dict[str, Any]]) -> None:
    only = data(PEFT, "--level", "nemo-rl:0")
    assert requested(only, "nemo-rl") == {0} and requested(only, "verl") == set()
    assert any("nemo-rl level 1 was left out" in text for text in only["limitations"])
    both = data(PEFT, "--add", "4", "--add", "verl:2/ep")
    assert requested(both, "nemo-rl") == {1, 4, 6} and requested(both, "verl") == {0, 1, 2, 4, 5}
    assert any(item["id"] == "verl-L2-ep" for item in both["steps"])


def test_one_loop_can_be_chosen(data: Callable[..., dict[str, Any]]) -> None:
    assert {item["loop"] for item in data(PEFT, "--loop", "verl")["steps"]} == {"verl"}


def test_without_a_checkout_the_bench_loop_is_planned(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plan", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {step["loop"] for step in found["steps"]} == {"bench"}
    assert {item["loop"] for item in found["levels"] if not item["requested"]} >= {"nemo-rl", "verl"}


def test_the_script_runs_each_step_in_a_directory_of_its_own(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    status, text, _ = plan(PEFT, "--commands")
    assert status == 0
    assert "set -euo pipefail" in text and "| tee" not in text and "{attempt_dir}" not in text
    fake = tmp_path / "bin"
    fake.mkdir()
    for name in ("uv", "bash"):
        (fake / name).write_text('#!/bin/sh\necho "$0" "$@" "in $PWD" "path $PYTHONPATH"\n')
        (fake / name).chmod(0o755)
    (tmp_path / "script.sh").write_text(text)
    done = subprocess.run(["/bin/bash", str(tmp_path / "script.sh")], env={"PATH": f"{fake}:/usr/bin:/bin"},
                          cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    logs = {path.parent.name: path.read_text() for path in (tmp_path / "proveout-attempts").glob("*/run.log")}
    assert {"bridge-tests", "nemo-rl-L1-lora", "verl-L0-default"} <= logs.keys()
    assert f"in {tmp_path}/nemo path {tmp_path}/bridge/src:" in logs["nemo-rl-L1-lora"]
    assert (
        f"default_local_dir={tmp_path}/proveout-attempts/verl-L0-default/checkpoints"
        in logs["verl-L0-default"]
    )


def test_the_script_stops_at_the_first_failure(
    plan: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    _, text, _ = plan(PEFT, "--commands")
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "uv").chmod(0o755)
    (tmp_path / "s.sh").write_text(text)
    done = subprocess.run(["/bin/bash", "s.sh"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path,
                          check=False, capture_output=True)  # fmt: skip
    assert done.returncode == 7
    assert [path.name for path in (tmp_path / "proveout-attempts").iterdir()] == ["bridge-tests"]


def test_the_text_names_levels_reasons_steps_and_totals(plan: Callable[..., tuple[int, str, str]]) -> None:
    status, text, _ = plan(PEFT)
    lines = text.splitlines()
    assert status == 0
    assert lines[0] == "Change: 1 named paths (1 file)"
    assert any(
        line.split()[:3] == ["nemo-rl", "6", "default"] and line.endswith("adapters") for line in lines
    )
    assert any(line.startswith("nemo-rl-L1-lora ") and line.endswith("GRPO with LoRA") for line in lines)
    assert any(line.startswith("Together about") and line.endswith("GPU-hours") for line in lines)
    assert "Not requested: nemo-rl levels 0, 2, 3, 4, 5 - no changed path asks for it" in lines


def test_a_path_is_explained(plan: Callable[..., tuple[int, str, str]]) -> None:
    status, text, _ = plan("--explain", "src/megatron/bridge/training/fsdp_compat.py")
    assert status == 0
    assert "rule fsdp" in text and "levels: verl 3" in text
    _, found, _ = plan("--explain", "src/megatron/bridge/recipes", "--json")
    assert json.loads(found)[0]["levels"] == {}


def test_a_rejected_override_is_exit_2_and_names_the_key(plan: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = plan("--loop", "nemo-rl", "--level", "0", "--override", "policy.megatron_cfg.tensor_parallel=2",
                            "--commands")  # fmt: skip
    assert status == 2
    assert "no key policy.megatron_cfg.tensor_parallel" in err and "did you mean" in err
    assert out.startswith("#!/usr/bin/env bash")


def test_what_the_checkout_itself_rejects_is_skipped_with_the_reason(
    plan: Callable[..., tuple[int, str, str]], nemo: Path
) -> None:
    path = nemo / "tests/functional/grpo_megatron.sh"
    path.write_text(path.read_text().replace("grpo.max_num_steps", "grpo.max_steps"))
    status, text, _ = plan("--loop", "nemo-rl", "--level", "nemo-rl:0", "--commands")
    assert status == 0
    assert "# left out: this checkout rejects it: no key grpo.max_steps; did you mean" in text.replace(
        " (grpo has no max_steps)", ""
    )
    assert "grpo_megatron.sh" not in "".join(line for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--loop", "nemo"], "did you mean 'nemo-rl'"),
        (["--level", "9"], "no level 9"),
        (["--level", "nemo-rl:x"], "names no level"),
        (["--level", "1-"], "no level"),
        (["--level", "nemo-rl:4/tp2"], "did you mean 'tp2-sp'"),
        (["--base", "nope"], "no revision 'nope'"),
        (["--whole", "--base", "main"], "exclude each other"),
        (["--patch", "gone.patch"], "cannot be read"),
        (["/etc/hosts"], "lies in none of the checkouts"),
        (["--override", "a=1", "--whole"], "does not say for which loop"),
        (["--set", "verl:LORA_RNK=1", "--level", "0"], "did you mean 'LORA_RANK'"),
        (["--set", "x", "--level", "0"], "no setting"),
        (["--bridge", "/nowhere", "--level", "0"], "does not exist"),
        (["--explain", "/etc/hosts"], "lies in none"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(
    words: list[str], said: str, plan: Callable[..., tuple[int, str, str]]
) -> None:
    status, out, err = plan(*words)
    assert status == 2
    assert said in err and "Traceback" not in err and out == ""


def test_a_tree_without_git_needs_to_be_told_the_change(
    plan: Callable[..., tuple[int, str, str]], bridge: Path, tmp_path: Path
) -> None:
    (bridge / ".git").rename(tmp_path / "away")
    status, _, err = plan()
    assert status == 2 and "not a git tree" in err and "--whole" in err
    status, out, _ = plan(PEFT, "--json")
    assert status == 0
    assert "plan.checkout.not-git" in {item["id"] for item in json.loads(out)["findings"]}


def test_trees_that_would_be_imported_instead_are_named(
    data: Callable[..., dict[str, Any]], bridge: Path, monkeypatch: pytest.MonkeyPatch, nemo: Path,
    write_files: Callable[[Path, dict[str, str]], Path],
) -> None:  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", "/old:")
    (bridge / MCORE_IN_BRIDGE / "megatron/core/__init__.py").unlink()
    (bridge / MCORE_IN_BRIDGE / "megatron/core").rmdir()
    write_files(nemo, {f"{BRIDGE_IN_NEMO_RL}/src/megatron/bridge/peft/lora.py": "Y = 1\n"})
    ids = {item["id"] for item in data(PEFT)["findings"]}
    assert {"plan.pythonpath.empty-entry", "plan.mcore.missing", "plan.vendored.differs"} <= ids


def test_no_checkout_changes_by_a_byte(
    plan: Callable[..., tuple[int, str, str]], bridge: Path, nemo: Path, verl_tree: Path,
    hashed: Callable[[Path], str],
) -> None:  # fmt: skip
    (bridge / PEFT).write_text("X = 9\n")
    (bridge / "untracked.py").write_text("")
    (nemo / "nemo_rl/__init__.py").touch()
    before = [hashed(root) for root in (bridge, nemo, verl_tree)]
    for words in ([], [PEFT], ["--whole", "--json"], ["--level", "0-6", "--commands"], ["--explain", PEFT],
                  ["--base", "HEAD"], ["--level", "17"]):  # fmt: skip
        plan(*words)
    assert [hashed(root) for root in (bridge, nemo, verl_tree)] == before


def test_all_levels_of_both_loops_name_only_what_exists(
    plan: Callable[..., tuple[int, str, str]], bridge: Path, nemo: Path, verl_tree: Path
) -> None:
    status, text, _ = plan("--level", "nemo-rl:0-6/all", "--level", "verl:0-5/all", "--commands")
    assert status == 0
    for line in text.splitlines():
        if line.startswith("  uv ") or line.startswith("  bash "):
            for word in shlex.split(line.replace('"$ATTEMPT"', "A")):
                if word.endswith((".sh", ".py")) and not word.startswith("A"):
                    assert any((root / word).exists() for root in (bridge, nemo, verl_tree)), word


def test_secrets_in_the_import_path_do_not_land_in_the_output(
    plan: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/x/hf_abcdefghijklmnopqrstuvwxyz")
    for form in ("--json", "--commands"):
        assert "hf_abcdef" not in plan(PEFT, form)[1]


def test_the_state_of_the_trees_is_kept_as_patches(checkouts: dict[str, str], bridge: Path) -> None:
    (bridge / PEFT).write_text("X = 9\n")
    (bridge / os.fsdecode(b"caf\xe9.py")).write_text("new\n")
    patches = make_plan(PlanRequest(checkouts=checkouts)).patches()
    assert list(patches) == ["bridge"]
    assert (
        b"+X = 9" in patches["bridge"] and b"caf\xe9.py" in patches["bridge"] and b"+new" in patches["bridge"]
    )
