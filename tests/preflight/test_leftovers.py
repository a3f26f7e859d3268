"""Caches and directories of earlier runs."""

from __future__ import annotations

from pathlib import Path

from tests.preflight.conftest import Find
from tests.preflight.steps import step, wrapper

FORCE = "policy.megatron_cfg.force_reconvert_from_hf"


def test_a_converted_checkpoint_of_the_model_warns(find: Find, tmp_path: Path) -> None:
    fields = {"loops": ("nemo-rl",), "model": "Qwen/Qwen3-0.6B", "env": {"HF_HOME": str(tmp_path)}}
    assert find("conversion-cache", **fields) == ()
    cached = tmp_path / "nemo_rl" / "Qwen" / "Qwen3-0.6B" / "iter_0000000"
    cached.mkdir(parents=True)
    (finding,) = find("conversion-cache", **fields)
    assert finding.where.file == str(cached) and FORCE in finding.remedy
    assert find("conversion-cache", **{**fields, "model": "Qwen/Qwen3-1.7B"}) == ()
    assert find("conversion-cache", **{**fields, "loops": ("verl",)}) == ()
    fresh = {"NRL_MEGATRON_CHECKPOINT_DIR": str(tmp_path / "fresh"), "HF_HOME": str(tmp_path)}
    assert find("conversion-cache", **{**fields, "env": fresh}) == ()
    again = step("nemo-rl", "bash", "grpo_megatron.sh", f"++{FORCE}=true")
    assert find("conversion-cache", steps=again, **fields) == ()


def test_a_local_model_is_cached_under_its_path(find: Find, tmp_path: Path) -> None:
    model = tmp_path / "models" / "tiny"
    model.mkdir(parents=True)
    name = "model_" + str(model).replace("/", "_")
    (tmp_path / "nemo_rl" / f"{name}__hfovr_abc" / "iter_0000000").mkdir(parents=True)
    fields = {"loops": ("nemo-rl",), "model": str(model), "env": {"HF_HOME": str(tmp_path)}}
    assert len(find("conversion-cache", **fields)) == 1


def test_earlier_experiments_in_the_checkout_warn(find: Find, tmp_path: Path) -> None:
    run = step("nemo-rl", "bash", "tests/functional/grpo_megatron.sh")
    fields = {"steps": run, "loops": (), "checkouts": {"nemo-rl": str(tmp_path)}}
    assert find("leftovers", **fields) == ()
    old = tmp_path / "tests" / "functional" / "grpo_megatron" / "logs" / "exp_001"
    old.mkdir(parents=True)
    (finding,) = find("leftovers", **fields)
    assert finding.id == "preflight.leftovers.experiments" and finding.where.file == str(old.parents[1])
    (tmp_path / "logs" / "exp_002").mkdir(parents=True)
    assert len(find("leftovers", **fields)) == 2


def test_verls_shared_checkpoint_directory_warns(find: Find, tmp_path: Path) -> None:
    fields = {"checkouts": {"verl": str(tmp_path)}, "loops": ()}
    assert find("leftovers", steps=wrapper(), **fields) == ()
    place = tmp_path / "checkpoints" / "verl-test" / "qwen2.5-0.5b-megatron-gsm8k-minimal"
    (place / "global_step_1").mkdir(parents=True)
    assert "all variants share" in find("leftovers", steps=wrapper(), **fields)[0].what
    assert "resumed from" in find("leftovers", steps=wrapper(RESUME_MODE="auto"), **fields)[0].what
    assert find("leftovers", steps=wrapper(MODEL_ID="Qwen/Qwen3-0.6B"), **fields) == ()


def test_a_dummy_model_that_exists_would_be_reused(find: Find, tmp_path: Path) -> None:
    wants = {"USE_DUMMY_MODEL": "True", "DUMMY_MODEL_PATH": str(tmp_path / "dummy")}
    assert find("leftovers", loops=("verl",), env=wants) == ()
    (tmp_path / "dummy").mkdir()
    assert find("leftovers", loops=("verl",), env=wants)[0].id == "preflight.leftovers.dummy-model"
    assert find("leftovers", loops=("verl",), env={**wants, "USE_DUMMY_MODEL": "False"}) == ()
