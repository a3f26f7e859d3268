"""Loop verl on platform cpu, as planned: verl's own trainer or wrapper, with the words that its configuration takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer
from tests.plan.conftest import BRIDGE, VERL, write

CPU = ("--loop", "verl", "--platform", "cpu", "--set", "verl:python=/stack/bin/python")
Proveout = Callable[..., Answer]


def planned(proveout: Proveout, *words: str) -> dict[str, Any]:
    answer = proveout("run", "--dry-run", *CPU, "--json", *words)
    assert answer.status == 0, answer.err
    plan: dict[str, Any] = answer.json
    return plan


def steps(plan: dict[str, Any]) -> dict[str, Any]:
    return {step["id"]: step | step.get("command", {}) for step in plan["steps"]}


def kinds(step: dict[str, Any]) -> dict[str, Any]:
    return {criterion["kind"]: criterion.get("params", {}) for criterion in step["criteria"]}


def test_no_checkout_is_needed_and_every_limitation_of_the_platform_is_said(proveout: Proveout) -> None:
    plan = planned(proveout)
    step = steps(plan)["verl-L0-default"]
    assert step["argv"][:3] == ["/stack/bin/python", "-m", "proveout_cpu.verl.start"]
    assert "verl.trainer.main_ppo" in step["argv"]
    assert step["env"]["VERL_USE_EXTERNAL_MODULES"] == "proveout_cpu.verl.plugin"
    said = " ".join(plan["limitations"])
    for word in (
        "Transformer Engine",
        "vLLM",
        "NCCL",
        "gloo",
        "fp32",
        "stand-in",
        "distributed optimizer",
        "tiny",
    ):
        assert word in said
    assert step["claim"].endswith("(platform cpu)")


def test_a_pass_needs_the_first_weights_right_movement_and_agreement(proveout: Proveout) -> None:
    every = steps(planned(proveout, "--level", "0,1,2,5"))
    assert "replicas got different weights" in every.pop("verl-L2-ep2")["skip_reason"]
    for step in every.values():
        asked = kinds(step)
        assert asked["refit_proof"]["fresh"] is (step["id"] != "verl-L1-resume")
        assert {item["tag"] for item in asked["refit_proof"]["agreement"]} == {
            "training/rollout_actor_probs_pearson_corr",
            "training/rollout_probs_diff_max",
        }
        assert step["planned_steps"] >= 2


def test_the_resume_goes_on_from_the_middle_of_the_run_that_saved(proveout: Proveout) -> None:
    found = steps(planned(proveout, "--level", "1/resume"))
    save, resume = found["verl-L1-save"], found["verl-L1-resume"]
    place = next(word for word in save["argv"] if word.startswith("trainer.default_local_dir="))
    saved = place.partition("=")[2]
    assert f"trainer.resume_from_path={saved}/global_step_2" in resume["argv"]
    assert f"trainer.default_local_dir={saved}" not in resume["argv"]
    assert resume["needs"] == ["verl-L1-save"]
    assert kinds(resume)["resume_parity"] == {
        "baseline": "verl-L1-save",
        "saved": "verl-L1-save",
        "resumed_after": 2,
    }


def test_sizes_reach_every_engine_and_are_judged(proveout: Proveout) -> None:
    step = steps(planned(proveout, "--level", "2/tp2"))["verl-L2-tp2"]
    for engine in ("actor_rollout_ref.actor", "actor_rollout_ref.ref", "critic"):
        assert f"{engine}.megatron.tensor_model_parallel_size=2" in step["argv"]
    assert (
        kinds(step)["backend"]["expected"]["actor_rollout_ref.actor.megatron.tensor_model_parallel_size"] == 2
    )
    assert "trainer.n_gpus_per_node=2" in step["argv"]


def test_a_level_that_needs_gpus_is_skipped_with_the_reason(proveout: Proveout) -> None:
    step = steps(planned(proveout, "--level", "3"))["verl-L3-default"]
    assert "platform cpu has no level 3 (Megatron-FSDP)" in step["skip_reason"]


def test_with_checkouts_the_unmodified_wrapper_runs_and_the_worker_must_import_the_bridge(
    proveout: Proveout, tmp_path: Path
) -> None:
    verl, bridge = write(tmp_path / "verl", VERL), write(tmp_path / "bridge", BRIDGE)
    plan = planned(proveout, "--level", "0", "--verl", str(verl), "--bridge", str(bridge), "--whole")
    step = steps(plan)["verl-L0-default"]
    argv = step["argv"]
    assert argv[argv.index("--") + 1 :][:2] == [
        "bash",
        f"{verl}/tests/special_e2e/run_ppo_trainer_megatron.sh",
    ]
    assert step["env"]["PYTHONPATH"].split(":")[0] == f"{bridge}/src"
    assert step["env"]["PYTHONDONTWRITEBYTECODE"] == "1"
    assert step["env"]["VERL_USE_UV"] == "0"
    asked = kinds(step)["provenance"]
    assert (asked["expected"]["megatron.bridge"], asked["by"]) == (f"{bridge}/src", ["worker"])


def test_the_last_word_on_the_number_of_steps_is_the_users(proveout: Proveout) -> None:
    step = steps(planned(proveout, "--level", "0", "trainer.total_training_steps=7"))["verl-L0-default"]
    assert step["planned_steps"] == 7
    assert step["argv"][-1] == "trainer.total_training_steps=7"


def test_a_path_that_is_not_there_is_not_replaced_by_a_tiny_model(proveout: Proveout, tmp_path: Path) -> None:
    plan = planned(proveout, "--level", "0", "--model", str(tmp_path / "gone"))
    step = steps(plan)["verl-L0-default"]
    assert any(word.endswith(str(tmp_path / "gone")) for word in [*step["argv"], *step["env"].values()])
    assert not any(text.endswith(str(tmp_path / "gone")) for text in plan["limitations"])


def test_the_tiny_model_is_of_the_plans_family(proveout: Proveout) -> None:
    plan = planned(proveout, "--level", "0", "--model", "meta-llama/Llama-3.2-1B")
    assert "llama" in steps(plan)["verl-L0-default"]["argv"]
    assert "a tiny llama ran in the place of meta-llama/Llama-3.2-1B" in plan["limitations"]
    other = planned(proveout, "--level", "0", "--model", "google/gemma-2b")
    assert any("google/gemma-2b has no tiny model here" in text for text in other["limitations"])


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--platform", "tpu"), 2, "loop verl has no platform 'tpu'"),
        (("--platform", "cpu", "--set", "verl:pyton=x"), 2, "has no option 'pyton'; did you mean 'python'?"),
        (("--platform", "cpu", "--level", "2/tp3"), 2, "no variant 'tp3'"),
        (("--platform", "cpu", "--set", "verl:family=qwen9"), 2, "no tiny model of family 'qwen9'"),
    ],
)
def test_what_is_asked_wrongly_is_said(
    proveout: Proveout, words: tuple[str, ...], status: int, said: str
) -> None:
    extra = () if any("verl:" in word for word in words) else ("--set", "verl:python=/stack/bin/python")
    answer = proveout("plan", "--loop", "verl", *words, *extra)
    assert (answer.status, said in answer.err) == (status, True), answer.err


def test_without_the_stack_the_run_is_blocked_and_says_how_to_get_it(
    proveout: Proveout, tmp_path: Path
) -> None:
    answer = proveout(
        "run", "--loop", "verl", "--platform", "cpu", env={"PROVEOUT_STACKS": str(tmp_path / "none")}
    )
    assert answer.status == 3
    assert "proveout stack install verl-cpu" in answer.err
