"""NeMo-RL's levels as commands, and every item of its documents that the checkout has outgrown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proveout import loops
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding, Severity
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, Command, Coverage, LevelRequest, Step
from proveout.domain.tree import Tree
from proveout.loops.nemo_rl import LOOP, _tree
from proveout.loops.nemo_rl.functional import read_script

Write = Callable[[Path, dict[str, str]], Path]


@pytest.fixture
def context(checkouts: dict[str, str]) -> LoopContext:
    return LoopContext(python="python", checkouts=checkouts)


def steps(
    context: LoopContext, level: int, variant: str = "default", paths: tuple[str, ...] = ()
) -> dict[str, Step]:
    request = LevelRequest(
        loop="nemo-rl", level=level, requested=True, reason="", variant=variant, paths=paths
    )
    return {step.id: step for step in LOOP.steps(request, context)}


def found(context: LoopContext, level: int, variant: str, *overrides: str) -> list[Finding]:
    asked = LoopContext(python="python", checkouts=context.checkouts, overrides=overrides)
    return list(LOOP.verify(steps(asked, level, variant)[f"nemo-rl-L{level}-{variant}"], asked))


def ids(findings: list[Finding]) -> set[str]:
    return {item.id for item in findings}


def by_hand(*argv: str) -> Step:
    return Step(
        id="by-hand",
        coverage=Coverage(loop="nemo-rl", level=0),
        deliverable="",
        claim="",
        command=Command(argv=argv),
    )


def test_the_smoke_step_is_the_functional_script_with_its_own_checks(
    context: LoopContext, nemo: Path
) -> None:
    step = steps(context, 0)["nemo-rl-L0-default"]
    assert step.command.argv == ("uv", "run", "bash", "tests/functional/grpo_megatron.sh")
    assert step.command.cwd == str(nemo)
    assert (step.planned_steps, step.resources.gpus) == (2, 2)
    checks = next(item for item in step.criteria if item.kind == "checks")
    assert checks.params["expressions"] == ['max(data["train/token_mult_prob_error"]) < 1.05']
    assert {item.kind for item in step.criteria} == {"checks", "backend", "provenance", "fresh_import"}
    assert step.metrics[0].path == f"{nemo}/tests/functional/grpo_megatron/logs"
    assert f"{nemo}/tests/functional/grpo_megatron/metrics.json" in {item.path for item in step.artifacts}
    assert LOOP.verify(step, context) == ()


def test_the_environment_puts_the_trees_first_and_the_conversion_cache_is_fresh(
    context: LoopContext, monkeypatch: pytest.MonkeyPatch, bridge: Path, nemo: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/old:")
    command = steps(context, 0)["nemo-rl-L0-default"].command
    assert command.env["PYTHONPATH"] == f"{bridge}/src:{bridge}/3rdparty/Megatron-LM:{nemo}:/old"
    assert command.env["NRL_MEGATRON_CHECKPOINT_DIR"].startswith(ATTEMPT_DIR)
    assert "NRL_IGNORE_TP_ACCURACY_CHECK" in command.unset


def test_the_users_words_decide_the_planned_step_and_the_gpus(context: LoopContext) -> None:
    asked = LoopContext(
        python="p", checkouts=context.checkouts, overrides=("grpo.max_num_steps=7", "cluster.gpus_per_node=4")
    )
    step = steps(asked, 0)["nemo-rl-L0-default"]
    assert (step.planned_steps, step.resources.gpus) == (7, 4)
    short = LoopContext(python="p", checkouts=context.checkouts, gpus=1)
    assert "needs 2 GPUs" in steps(short, 0)["nemo-rl-L0-default"].skip_reason


def test_no_step_writes_into_the_checkout_by_its_own_words(context: LoopContext, nemo: Path) -> None:
    step = steps(context, 2)["nemo-rl-L2-default"]
    assert f"logger.log_dir={ATTEMPT_DIR}/logs" in step.command.argv
    assert not any(str(nemo) in word for word in step.command.argv)


# The documents' stale items, one test each.


def test_stale_weight_transfer_test_is_replaced_by_its_successors(context: LoopContext, nemo: Path) -> None:
    step = steps(context, 2)["nemo-rl-L2-unit-refit"]
    assert "tests/unit/utils/test_weight_transfer_stream.py" in step.command.argv
    assert "tests/unit/weight_sync/test_sync.py" in step.command.argv
    assert "test_weight_transfer.py does not exist" in step.substitutions[0]
    (nemo / "tests/unit/utils/test_weight_transfer.py").write_text("def test_old(): ...\n")
    _tree.cache_clear()
    older = steps(context, 2)["nemo-rl-L2-unit-refit"]
    assert older.command.argv[-1].endswith("test_weight_transfer.py") and older.substitutions == ()


def test_stale_selection_that_deselects_all_is_caught_and_ours_selects(context: LoopContext) -> None:
    files = (
        "tests/unit/models/megatron/test_megatron_setup.py",
        "tests/unit/models/policy/test_megatron_worker.py",
    )
    plain = list(LOOP.verify(by_hand("uv", "run", "pytest", "-q", *files), context))
    assert ids(plain) == {"plan.tests.deselected"} and "all 4 tests" in plain[0].what
    assert "--mcore-only" in plain[0].remedy
    step = steps(context, 0)["nemo-rl-L0-unit-megatron-mcore"]
    assert step.command.argv[:6] == ("uv", "run", "--extra", "mcore", "--group", "test")
    assert "--mcore-only" in step.command.argv and "--hf-gated" not in step.command.argv
    assert "1 megatron unit tests" in step.limitations[0]
    assert LOOP.verify(step, context) == ()


def test_a_flag_that_selects_none_of_the_files_is_caught(context: LoopContext) -> None:
    step = by_hand("pytest", "tests/unit/utils/test_checkpoint.py", "--mcore-only")
    assert ids(list(LOOP.verify(step, context))) == {"plan.tests.deselected"}
    wanted = by_hand("pytest", "tests/unit/models/policy/test_megatron_worker.py", "--mcore-only")
    assert LOOP.verify(wanted, context) == ()


def test_a_selection_of_gated_tests_alone_gets_the_flag(
    context: LoopContext, nemo: Path, write_files: Write
) -> None:
    gated = "import pytest\n\npytestmark = [pytest.mark.hf_gated]\n\ndef test_a(): ...\n"
    write_files(
        nemo,
        {"tests/unit/utils/test_checkpoint.py": gated, "tests/unit/utils/test_native_checkpoint.py": gated},
    )
    assert "--hf-gated" in steps(context, 1)["nemo-rl-L1-unit-checkpoint"].command.argv


def test_stale_converter_type_is_rejected_or_without_effect(context: LoopContext) -> None:
    plain = found(context, 0, "default", "policy.megatron_cfg.converter_type=X")
    assert ids(plain) == {"plan.override.unknown-key"} and "now: nothing" in plain[0].remedy
    forced = found(context, 0, "default", "++policy.megatron_cfg.converter_type=X")
    assert ids(forced) == {"plan.override.unread"} and forced[0].severity is Severity.WARNING


def test_stale_delta_compression_names_the_transport(context: LoopContext) -> None:
    plain = found(context, 2, "default", "policy.generation.delta_compression.enabled=true")
    assert "refit_transport=vllm_zmq_sparse" in plain[0].remedy
    step = steps(context, 2, "delta")["nemo-rl-L2-delta"]
    assert "policy.generation.refit_transport=vllm_zmq_sparse" in step.command.argv
    assert "delta_compression" in step.substitutions[0]
    assert LOOP.verify(step, context) == ()
    colocated = found(context, 0, "default", "policy.generation.refit_transport=vllm_zmq_sparse")
    assert ids(colocated) == {"plan.refit-transport"}


def test_stale_transfer_timings_are_replaced_by_series_that_exist(context: LoopContext) -> None:
    step = steps(context, 2, "delta")["nemo-rl-L2-delta"]
    series = next(item for item in step.criteria if item.kind == "refit_timing").params["series"]
    assert not any("producer" in name or "consumer" in name for name in series)
    assert "refit/delta/changed_pct" in series
    assert "producer" in step.substitutions[0]


@pytest.mark.parametrize("name", ["vlm_grpo", "dpo_megatron_lora"])
def test_stale_scripts_that_run_dtensor_are_caught(name: str, context: LoopContext) -> None:
    findings = found(context, 5, name)
    assert ids(findings) == {"plan.backend.not-megatron"}
    assert findings[0].where.file == f"tests/functional/{name}.sh" and findings[0].severity is Severity.ERROR


def test_stale_vlm_script_is_replaced_by_the_megatron_configuration(context: LoopContext) -> None:
    step = steps(context, 5, "vlm")["nemo-rl-L5-vlm"]
    assert step.command.argv[2:5] == (
        "examples/run_vlm_grpo.py",
        "--config",
        "examples/configs/vlm_grpo_3B_megatron.yaml",
    )
    assert "vlm_grpo.sh runs DTensor" in step.substitutions[0]


def test_stale_lora_script_does_not_keep_its_checkpoint(context: LoopContext) -> None:
    findings = found(context, 1, "lora")
    assert ids(findings) == {"plan.script.checkpoint-removed"}
    assert any("never resumes" in text for text in steps(context, 1, "lora")["nemo-rl-L1-lora"].limitations)
    assert found(context, 1, "lora", "checkpointing.enabled=false") == []


def test_stale_resume_diamond_must_show_that_it_resumed(context: LoopContext, nemo: Path) -> None:
    step = steps(context, 1, "resume")["nemo-rl-L1-resume"]
    parity = next(item for item in step.criteria if item.kind == "resume_files").params
    assert parity["resumed_after"] == 1
    assert parity["resumed"] == f"{nemo}/tests/functional/sft_resume_diamond/mcore_2step.json"


def test_stale_manual_refit_command_has_a_log_directory_of_its_own(context: LoopContext) -> None:
    step = steps(context, 2)["nemo-rl-L2-default"]
    assert any(word.startswith(f"logger.log_dir={ATTEMPT_DIR}") for word in step.command.argv)
    assert "attempt directory" in step.substitutions[0]


def test_stale_tee_without_pipefail_is_named(context: LoopContext, nemo: Path) -> None:
    path = nemo / "tests/functional/grpo_megatron.sh"
    path.write_text(path.read_text().replace("set -eou pipefail", "set -eu"))
    assert "plan.script.no-pipefail" in ids(found(context, 0, "default"))


def test_stale_mypy_is_replaced_by_pyrefly(context: LoopContext, nemo: Path) -> None:
    changed = ("nemo_rl/models/policy.py", "docs/x.md")
    step = steps(context, 0, paths=changed)["nemo-rl-L0-types"]
    assert step.command.argv[-3:] == ("pyrefly", "check", "nemo_rl/models/policy.py")
    assert "mypy is gone" in step.substitutions[0]
    (nemo / "pyrefly.toml").unlink()
    assert steps(context, 0, paths=changed)["nemo-rl-L0-types"].command.argv[-2] == "mypy"


# What else is checked against the tree.


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("policy.megatron_cfg.tensor_model_parallel_siz=2",), "plan.override.unknown-key"),
        (("policy.megatron_cfg.tensor_model_parallel_size=4",), "plan.sizes"),
        (("policy.megatron_cfg.pipeline_model_parallel_size=3", "cluster.gpus_per_node=8"), "plan.sizes"),
        (("policy.train_global_batch_size=7",), "plan.sizes"),
        (("policy.megatron_cfg.expert_model_parallel_size=3",), "plan.sizes"),
        (("policy.megatron_cfg.sequence_parallel=true",), "plan.sizes"),
        (("policy.generation.colocated.enabled=false", "policy.generation.colocated.resources.gpus_per_node=2"),
         "plan.sizes"),
        (("policy.dtensor_cfg.enabled=true",), "plan.backend.both"),
        (("policy.megatron_cfg.enabled=false",), "plan.backend.not-megatron"),
        (("+policy.model_name=x",), "plan.override.key-exists"),
        (("policy.megatron_cfg.enabled=yes",), "plan.override.type"),
    ],
)  # fmt: skip
def test_words_that_the_tree_or_the_gpus_refuse(
    words: tuple[str, ...], kind: str, context: LoopContext
) -> None:
    assert kind in ids(found(context, 0, "default", *words))


def test_tp_4_needs_equal_micro_batches(context: LoopContext) -> None:
    four = ("policy.megatron_cfg.tensor_model_parallel_size=4", "cluster.gpus_per_node=4")
    assert found(context, 0, "default", *four) == []
    assert ids(found(context, 0, "default", *four, "policy.logprob_batch_size=4")) == {"plan.tp-accuracy"}
    assert (
        found(
            context, 0, "default", *four, "policy.logprob_batch_size=4", "loss_fn.force_on_policy_ratio=true"
        )
        == []
    )


def test_extras_that_conflict_are_named(context: LoopContext) -> None:
    step = by_hand(
        "uv", "run", "--extra", "mcore", "--extra", "vllm", "bash", "tests/functional/grpo_megatron.sh"
    )
    assert ids(list(LOOP.verify(step, context))) == {"plan.extras"}


def test_a_script_that_is_gone_is_skipped_or_replaced_and_said(context: LoopContext, nemo: Path) -> None:
    (nemo / "tests/functional/grpo_megatron.sh").rename(nemo / "tests/functional/grpo_megatrons.sh")
    step = steps(context, 0)["nemo-rl-L0-default"]
    assert step.command.argv[-1] == "tests/functional/grpo_megatrons.sh"
    assert "stands in" in step.substitutions[0]
    for path in (nemo / "tests/functional").glob("*megatron*"):
        path.unlink()
    _tree.cache_clear()
    assert "does not exist" in steps(context, 0)["nemo-rl-L0-default"].skip_reason


def test_missing_files_of_a_command_are_findings_with_the_nearest(context: LoopContext) -> None:
    script = list(LOOP.verify(by_hand("bash", "tests/functional/grpo_megatrn.sh"), context))
    assert ids(script) == {"plan.missing.script"} and "grpo_megatron.sh" in script[0].remedy
    test = list(LOOP.verify(by_hand("pytest", "tests/unit/utils/test_checkpoints.py"), context))
    assert "plan.missing.test" in ids(test)


def test_the_smallest_recipe_is_taken(context: LoopContext) -> None:
    step = steps(context, 4, "ep")["nemo-rl-L4-ep"]
    assert "examples/configs/recipes/llm/grpo-small-1n8g-megatron.yaml" in step.command.argv
    assert (step.resources.gpus, step.planned_steps) == (8, 2)
    few = LoopContext(python="p", checkouts=context.checkouts, gpus=2)
    assert "needs 8 GPUs" in steps(few, 4, "ep")["nemo-rl-L4-ep"].skip_reason


def test_a_script_is_read_through_functions_arrays_and_here_documents(nemo: Path, write_files: Write) -> None:
    text = """#!/bin/bash
COMMON=(
    policy.model_name="a b"  # its name
    cluster.gpus_per_node=2
)
run() {
    local dir=$1
    shift 1
    uv run --extra mcore examples/run_grpo.py --config examples/configs/grpo_megatron.yaml \\
        "${COMMON[@]}" logger.log_dir=$dir "$@" 2>&1 | tee x.log
    uv run tests/check_metrics.py $dir/m.json \\
        "max(data[\\"a\\"]) < $1"
}
cat > x.yaml << YAML
uv run examples/run_sft.py not.a=run
YAML
if [ -n "$Y" ]; then
    UNSURE=1
fi
run /one 3 "$@"
W=2
N=$(((W + 1) * 4 / 2))
ODD=$((N ** $(date)))
uv run examples/run_sft.py grpo.max_num_steps=$N sure=${UNSURE} odd=$ODD "$@"
"""
    script = read_script(
        Tree(write_files(nemo, {"tests/functional/odd.sh": text})), "tests/functional/odd.sh"
    )
    assert [(run.entry, run.overrides) for run in script.runs] == [
        ("examples/run_grpo.py", ("policy.model_name=a b", "cluster.gpus_per_node=2", "logger.log_dir=/one")),
        ("examples/run_sft.py", ("grpo.max_num_steps=6", "sure=${UNSURE}", "odd=$UNKNOWN")),
    ]
    assert script.runs[0].extras == ("mcore",)
    assert script.runs[1].config == "examples/configs/grpo_base.yaml"
    assert script.checks == {"/one/m.json": ('max(data["a"]) < 3',)}
    assert not script.pipefail


@pytest.mark.parametrize(
    ("level", "variant", "said"),
    [(0, "defalt", "did you mean 'default'|no variant"), (4, "tp2", "did you mean 'tp2-sp'")],
)
def test_an_unknown_variant_names_the_nearest(
    level: int, variant: str, said: str, context: LoopContext
) -> None:
    with pytest.raises(UsageError, match=said):
        steps(context, level, variant)


def test_options_and_overrides_are_checked_before_anything(context: LoopContext) -> None:
    with pytest.raises(UsageError, match="did you mean 'hf_gated'"):
        LOOP.check(LoopContext(python="p", checkouts=context.checkouts, options={"hf_gate": "1"}))
    with pytest.raises(UsageError, match="sweep"):
        LOOP.check(LoopContext(python="p", checkouts=context.checkouts, overrides=("a=1,2",)))
    with pytest.raises(UsageError, match="needs a NeMo-RL checkout"):
        LOOP.check(LoopContext(python="p"))


def test_every_variant_makes_a_step_that_says_what_it_is(context: LoopContext) -> None:
    for level in loops.get("nemo-rl").levels:
        for step in steps(context, level, "all").values():
            assert step.deliverable and step.claim
            assert step.command.argv or step.skip_reason
