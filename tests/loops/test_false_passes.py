"""What looks as if it had passed: each ends with status 0, or with its own checks held, and is no Pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Answer, call
from tests.loops import standins

from proveout.domain.step import Step
from proveout.domain.verdict import Verdict

Prove = Callable[..., Any]
pytestmark = pytest.mark.real


def looks_well_and_fails(proof: Any, finding: str) -> bool:
    """The command ended with status 0, and the step failed by this finding."""
    last = proof.last
    return last.attempts[-1].exit.ok and last.verdict is Verdict.FAIL and finding in proof.ids


def rewrite(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "nemo/tests/functional/grpo_megatron.sh"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_nan_that_max_would_hide(prove: Prove, tmp_path: Path) -> None:
    rewrite(tmp_path, standins.CHECKS, "'max(data[\"train/grad_norm\"]) < 100'")
    rewrite(tmp_path, "uv run tests/check_metrics.py", "true uv run tests/check_metrics.py")
    assert looks_well_and_fails(prove("nemo-rl", 0, "nan"), "finite.non-finite")


def test_a_resume_that_trained_nothing(prove: Prove) -> None:
    """The checkpoint holds the last step already: the bar is full at once and the status 0."""
    proof = prove("verl", 1, "full-bar-on-resume", variant="lora")
    assert looks_well_and_fails(proof, "completion.nothing-left") and "[00:00<?" in proof.cited


def test_a_silent_restart(prove: Prove) -> None:
    """A run that starts over reproduces its baseline, so equal numbers show nothing."""
    assert prove("nemo-rl", 1, variant="resume").last.verdict is Verdict.PASS
    assert looks_well_and_fails(prove("nemo-rl", 1, "restarts", variant="resume"), "resume_parity.no-proof")


def test_metrics_of_an_earlier_run_beside_ours(prove: Prove, tmp_path: Path) -> None:
    """Without the wrapper's own clearing, exp_001 of an earlier run holds what this one's exp_002 lacks."""
    rewrite(tmp_path, "rm -rf $EXP_DIR && ", "")
    assert prove("nemo-rl", 0).last.verdict is Verdict.PASS
    assert (tmp_path / "nemo/tests/functional/grpo_megatron/logs/exp_001").exists()
    assert looks_well_and_fails(prove("nemo-rl", 0, "short"), "completion.short")


def test_a_suite_that_checks_only_what_is_complete(prove: Prove, tmp_path: Path) -> None:
    """As NeMo-RL's suite scripts do: checks run only where the last step was reached, else the status is 0."""
    last = "max(map(int, json.load(open('$JSON_METRICS'))['train/loss']))"
    reached = f'if python -c "import json; exit({last} < 2)"; then'
    rewrite(tmp_path, "uv run tests/check_metrics.py", f"{reached}\nuv run tests/check_metrics.py")
    path = tmp_path / "nemo/tests/functional/grpo_megatron.sh"
    path.write_text(path.read_text().rstrip() + "\nfi\n")
    assert prove("nemo-rl", 0).last.verdict is Verdict.PASS
    assert looks_well_and_fails(prove("nemo-rl", 0, "short"), "completion.short")


def test_a_run_that_its_own_time_limit_ended(prove: Prove) -> None:
    assert looks_well_and_fails(prove("nemo-rl", 0, "timeout-0"), "completion.timeout")


def test_a_pipe_into_tee_that_loses_the_status(prove: Prove, tmp_path: Path) -> None:
    rewrite(tmp_path, "set -eou pipefail", "set -eu")
    assert looks_well_and_fails(prove("nemo-rl", 0, "raises"), "completion.short")


def test_a_command_of_ours_that_pipes_into_tee(prove: Prove) -> None:
    def piped(step: Step) -> Step:
        command = msgspec.structs.replace(
            step.command, argv=("bash", "-c", " ".join(step.command.argv) + " | tee copy.log")
        )
        return msgspec.structs.replace(step, command=command)

    assert looks_well_and_fails(prove("nemo-rl", 0, change=piped), "false_pass.tee")


def test_an_import_that_a_converted_checkpoint_left_out(prove: Prove) -> None:
    proof = prove("nemo-rl", 0, "cached-import")
    assert looks_well_and_fails(proof, "fresh_import.reused") and "Skipping import." in proof.cited


def test_a_policy_on_dtensor(prove: Prove) -> None:
    assert looks_well_and_fails(prove("nemo-rl", 0, "dtensor"), "backend.differs")


@pytest.mark.parametrize("loop", ["nemo-rl", "verl"])
def test_workers_that_import_another_tree(prove: Prove, loop: str) -> None:
    proof = prove(loop, 0, "worker-import")
    assert looks_well_and_fails(proof, "provenance.foreign") and "site-packages/megatron" in proof.cited


def test_a_check_that_cannot_fail(prove: Prove, tmp_path: Path) -> None:
    rewrite(tmp_path, standins.CHECKS, "'len(data[\"train/loss\"]) >= 0'")
    assert looks_well_and_fails(prove("nemo-rl", 0), "checks.none-can-fail")


@pytest.fixture
def bridge_tests(
    stand_ins: dict[str, str], recording: Path, tmp_path: Path, verl_data: None
) -> Callable[[], tuple[Answer, str, list[str]]]:
    """Run level 0 of verl; the answer, the verdict of the Bridge's own tests, and what decided it."""

    def run() -> tuple[Answer, str, list[str]]:
        env = {**standins.environment(tmp_path / "bin", recording), "TORCH_CUDA_ARCH_LIST": "9.0"}
        trees = ("--bridge", stand_ins["bridge"], "--verl", stand_ins["verl"], "--set", "reward_model=off")
        answer = call("run", *trees, "--loop", "verl", "--level", "0", "--json", cwd=tmp_path, env=env)
        (step,) = (step for step in json.loads(answer.out)["steps"] if step["id"] == "bridge-tests")
        found = [f["id"] for f in step["attempts"][-1]["findings"] if f["severity"] == "error"]
        return answer, step["verdict"], found

    return run


def test_tests_that_a_runner_deselects_and_calls_a_success(
    bridge_tests: Callable[[], tuple[Answer, str, list[str]]], stand_ins: dict[str, str]
) -> None:
    """As NeMo-RL's run_unit.sh does: "no tests collected" becomes status 0."""
    Path(stand_ins["bridge"], "tests/unit_tests/conftest.py").write_text(
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=list(items))\n    items.clear()\n\n\n"
        "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    )
    answer, verdict, found = bridge_tests()
    assert (answer.status, verdict) == (1, "Fail")
    assert "judge.tests.too-few" in found and "judge.exit.status" not in found


def test_bridge_tests_that_fail(
    bridge_tests: Callable[[], tuple[Answer, str, list[str]]], stand_ins: dict[str, str]
) -> None:
    Path(stand_ins["bridge"], "tests/unit_tests/models/test_param_mapping.py").write_text(
        "def test_it():\n    assert False\n"
    )
    answer, verdict, found = bridge_tests()
    assert (answer.status, verdict) == (1, "Fail") and "judge.tests.failed" in found
    assert (
        next(d for d in json.loads(answer.out)["deliverables"] if "Bridge-side" in d["name"])["verdict"]
        == "Fail"
    )
