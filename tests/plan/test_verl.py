"""verl's levels as commands, and every trap of its wrapper."""

from __future__ import annotations

from pathlib import Path

import pytest

from proveout import loops
from proveout.domain.config.interpolate import lookup
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding
from proveout.domain.loop import LoopContext
from proveout.domain.step import ATTEMPT_DIR, LevelRequest, Step
from proveout.domain.tree import Tree
from proveout.loops.verl import LOOP
from proveout.loops.verl.variants import table
from proveout.loops.verl.wrapper import read_wrapper, resolve


@pytest.fixture
def context(checkouts: dict[str, str]) -> LoopContext:
    return LoopContext(python="python", checkouts=checkouts)


def steps(context: LoopContext, level: int, variant: str = "default") -> dict[str, Step]:
    request = LevelRequest(loop="verl", level=level, requested=True, reason="", variant=variant)
    return {step.id: step for step in LOOP.steps(request, context)}


def with_(
    context: LoopContext, *overrides: str, gpus: int = 0, model: str | None = None, **options: str
) -> LoopContext:
    return LoopContext(
        python="python",
        checkouts=context.checkouts,
        overrides=overrides,
        options=options,
        gpus=gpus,
        model=model,
    )


def found(context: LoopContext, level: int = 0, variant: str = "default") -> list[Finding]:
    return list(LOOP.verify(steps(context, level, variant)[f"verl-L{level}-{variant}"], context))


def ids(findings: list[Finding]) -> set[str]:
    return {item.id for item in findings}


def resolved(step: Step, root: Path) -> dict[str, object]:
    tree = Tree(root)
    wrapper = read_wrapper(tree, step.command.argv[1], step.command.env)
    run = resolve(tree, wrapper, step.command.argv[2:], table().config_dir, table().config_name)
    assert run.problems == ()
    return run.config


def test_the_smoke_step_is_the_wrapper_with_its_variables(context: LoopContext, verl_tree: Path) -> None:
    step = steps(context, 0)["verl-L0-default"]
    assert step.command.argv[:2] == ("bash", "tests/special_e2e/run_ppo_trainer_megatron.sh")
    assert step.command.env["LORA_RANK"] == "4"
    assert (step.planned_steps, step.resources.gpus) == (1, 2)
    config = resolved(step, verl_tree)
    assert lookup(config, "actor_rollout_ref.model.lora.rank") == 4
    assert lookup(config, "actor_rollout_ref.actor.megatron.tensor_model_parallel_size") == 1
    assert LOOP.verify(step, context) == ()


def test_the_wrapper_is_read_without_a_shell(verl_tree: Path) -> None:
    wrapper = read_wrapper(Tree(verl_tree), table().wrapper, {"MICRO_BSZ": "3"})
    assert wrapper.defaults["MODEL_ID"] == "Qwen/Qwen2.5-0.5B"
    assert wrapper.config_name == "ppo_megatron_trainer"
    assert "data.train_batch_size=12" in wrapper.overrides
    assert "actor_rollout_ref.rollout.tensor_model_parallel_size=2" in wrapper.overrides
    assert "actor_rollout_ref.model.lora.target_modules=['linear_qkv','linear_proj']" in wrapper.overrides


def test_trap_shadowing_directory_is_named_and_workers_get_the_path(
    context: LoopContext, bridge: Path
) -> None:
    findings = LOOP.check(context)
    assert any(
        item.id == "plan.wrapper.prepends" and "/workspace/Megatron-LM" in item.what for item in findings
    )
    words = steps(context, 0)["verl-L0-default"].command.argv
    assert any(
        word.startswith(f"++ray_kwargs.ray_init.runtime_env.env_vars.PYTHONPATH={bridge}/src:")
        for word in words
    )


def test_trap_pinned_packages_are_met_by_the_import_path_and_provenance(
    context: LoopContext, bridge: Path
) -> None:
    step = steps(context, 0)["verl-L0-default"]
    assert step.command.env["PYTHONPATH"].startswith(f"{bridge}/src:")
    expected = next(item for item in step.criteria if item.kind == "provenance").params["expected"]
    assert expected["megatron.bridge"] == f"{bridge}/src"


def test_trap_profiler_steps_are_off(context: LoopContext, verl_tree: Path) -> None:
    assert lookup(resolved(steps(context, 0)["verl-L0-default"], verl_tree), "global_profiler.steps") is None


def test_trap_a_dummy_model_is_made_anew_and_needs_a_config(context: LoopContext, verl_tree: Path) -> None:
    assert "DUMMY_MODEL_CONFIG_PATH" in steps(context, 0, "dummy")["verl-L0-dummy"].skip_reason
    given = with_(context, DUMMY_MODEL_CONFIG_PATH="/x/config.json")
    step = steps(given, 0, "dummy")["verl-L0-dummy"]
    assert step.command.env["DUMMY_MODEL_PATH"].startswith(ATTEMPT_DIR)
    assert any("dummy model" in text for text in step.limitations)
    gone = with_(context, DUMMY_MODEL_CONFIG_PATH="gone.json")
    assert "plan.missing.script" in ids(found(gone, 0, "dummy"))


def test_trap_variants_do_not_share_a_checkpoint_directory(context: LoopContext) -> None:
    words = {
        word
        for level in table().levels
        for step in steps(context, level, "all").values()
        for word in step.command.argv
        if word.startswith("trainer.default_local_dir=")
    }
    assert len(words) == 3 and all(ATTEMPT_DIR in word for word in words)


def test_trap_resume_must_train_one_step_more(context: LoopContext, verl_tree: Path) -> None:
    both = steps(context, 1, "lora")
    assert list(both) == ["verl-L1-save", "verl-L1-resume"]
    save, resume = both.values()
    assert resume.needs == ("verl-L1-save",)
    assert (save.planned_steps, resume.planned_steps) == (1, 2)
    parity = next(item for item in resume.criteria if item.kind == "resume_parity").params
    assert parity == {"saved": "verl-L1-save", "resumed_after": 1}
    assert lookup(resolved(resume, verl_tree), "trainer.resume_mode") == "auto"
    shared = {word for step in both.values() for word in step.command.argv if "default_local_dir" in word}
    assert len(shared) == 1
    assert ids(found(with_(context, "trainer.total_training_steps=1"), 1, "resume")) == {
        "plan.resume.trains-nothing"
    }


def test_trap_the_backend_is_judged_by_the_resolved_configuration(context: LoopContext) -> None:
    step = steps(context, 0)["verl-L0-default"]
    expected = next(item for item in step.criteria if item.kind == "backend").params["expected"]
    assert expected["actor_rollout_ref.actor.megatron.vanilla_mbridge"] is False


def test_trap_rocm_variable_is_taken_out(context: LoopContext) -> None:
    assert "ROCR_VISIBLE_DEVICES" in steps(context, 0)["verl-L0-default"].command.unset


def test_wrapper_variables_are_checked_for_typos_renames_and_use(context: LoopContext) -> None:
    with pytest.raises(UsageError, match="did you mean 'LORA_RANK'"):
        LOOP.check(with_(context, LORA_RNK="4"))
    with pytest.raises(UsageError) as gone:
        LOOP.check(with_(context, MODE="async"))
    assert "now: nothing" in gone.value.remedy
    assert ids(found(with_(context, RM_PARAM_OFFLOAD="True"))) == {"plan.wrapper.unused-variable"}
    new = [item for item in LOOP.check(context) if item.id == "plan.wrapper.new"]
    assert "BRAND_NEW" in new[0].what


def test_a_variable_that_the_wrapper_lost_is_an_error(context: LoopContext, verl_tree: Path) -> None:
    path = verl_tree / table().wrapper
    path.write_text(path.read_text().replace("LORA_RANK", "LORA_R"))
    findings = found(context)
    assert ids(findings) == {"plan.wrapper.unknown-variable"} and "did you mean 'LORA_R'" in findings[0].what


def test_an_override_of_the_wrapper_that_its_own_tree_rejects_is_found(
    context: LoopContext, verl_tree: Path
) -> None:
    path = verl_tree / table().wrapper
    path.write_text(
        path.read_text().replace("    reward.reward_model.enable=True", "    reward_model.enable=True")
    )
    findings = found(context)
    assert ids(findings) == {"plan.override.unknown-key"} and "reward" in findings[0].what


@pytest.mark.parametrize(
    ("options", "overrides", "said"),
    [
        ({"COMMON_TP": "4", "INFER_TP": "1"}, (), "and there are 2"),
        ({"COMMON_PP": "3", "NUM_GPUS": "8"}, (), "does not divide 8"),
        ({"INFER_TP": "3"}, (), "rollout TP 3"),
        ({"COMMON_VPP": "2"}, (), "needs PP > 1"),
        ({"NUM_GPUS": "3"}, (), "no multiple"),
        ({"COMMON_EP": "3", "NUM_GPUS": "4"}, (), "EP 3"),
    ],
)
def test_sizes_must_fit_the_gpus(
    options: dict[str, str], overrides: tuple[str, ...], said: str, context: LoopContext
) -> None:
    findings = found(with_(context, *overrides, **options))
    assert ids(findings) == {"plan.sizes"} and any(said in item.what for item in findings)


def test_options_that_lower_what_is_tested_are_limitations(context: LoopContext, verl_tree: Path) -> None:
    step = steps(with_(context, reward_model="off", enforce_eager="true"), 0)["verl-L0-default"]
    config = resolved(step, verl_tree)
    assert lookup(config, "reward.reward_model.enable") is False
    assert any("reward model was off" in text for text in step.limitations)
    assert any("CUDA graphs" in text for text in step.limitations)
    text = steps(with_(context, model="Qwen/Qwen2.5-VL-3B-Instruct"), 0)["verl-L0-default"]
    assert any("GSM8K is text" in item for item in text.limitations)
    experts = steps(with_(context, model="Qwen/Qwen3-30B-A3B"), 0)["verl-L0-default"]
    assert any("EP=1" in item for item in experts.limitations)


def test_a_local_model_is_passed_as_a_path(context: LoopContext) -> None:
    env = steps(with_(context, model="/models/mine"), 0)["verl-L0-default"].command.env
    assert (env["MODEL_PATH"], env["MODEL_ID"]) == ("/models/mine", "mine")


def test_steps_that_need_more_gpus_are_skipped(context: LoopContext) -> None:
    few = with_(context, gpus=1)
    assert steps(few, 2)["verl-L2-tp2-pp2"].skip_reason == "needs 4 GPUs, and --gpus says 1"
    assert steps(few, 0)["verl-L0-default"].command.env["NUM_GPUS"] == "1"


def test_a_missing_example_or_an_unsupported_path_is_skipped(context: LoopContext) -> None:
    assert "does not exist" in steps(context, 4, "vlm")["verl-L4-vlm"].skip_reason
    assert "no maintained Megatron example" in steps(context, 4, "audio")["verl-L4-audio"].skip_reason


def test_every_variant_makes_a_step_that_says_what_it_is(context: LoopContext) -> None:
    for level in loops.get("verl").levels:
        for step in steps(context, level, "all").values():
            assert step.deliverable and (step.claim or step.skip_reason)
            assert step.command.argv or step.skip_reason


@pytest.mark.parametrize("options", [{"reward_modell": "off"}])
def test_an_unknown_option_names_the_nearest(options: dict[str, str], context: LoopContext) -> None:
    with pytest.raises(UsageError, match="did you mean 'reward_model'"):
        LOOP.check(with_(context, **options))
