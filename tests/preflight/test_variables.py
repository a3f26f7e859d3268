"""Environment variables, offline switches, loggers, profilers, secrets: each as a run would see it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.preflight import trees
from tests.preflight.conftest import Find, make_venv
from tests.preflight.steps import WRAPPER, step, wrapper

from proveout.domain.finding import Severity
from proveout.domain.preflight import Worker
from proveout.domain.verdict import Verdict


def test_rocr_beside_cuda_blocks(find: Find) -> None:
    both = {"ROCR_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}
    assert find("rocr", loops=("verl",), env=both)[0].decides is Verdict.BLOCKED
    assert find("rocr", loops=("verl",), env={"ROCR_VISIBLE_DEVICES": "0"}) == ()
    assert find("rocr", loops=("bench",), env=both) == ()


def test_the_environment_of_the_step_counts(find: Find) -> None:
    outside = {"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "0"}
    assert len(find("rocr", loops=(), steps=wrapper(), env=outside)) == 1
    (only,) = wrapper()
    unset = only.command.__class__(argv=only.command.argv, unset=("ROCR_VISIBLE_DEVICES",))
    import msgspec

    assert find("rocr", loops=(), steps=(msgspec.structs.replace(only, command=unset),), env=outside) == ()


def test_cuda_arch_list_is_wanted_by_nemo_rl_alone(find: Find) -> None:
    assert find("cuda-arch", loops=("nemo-rl",))[0].decides is Verdict.BLOCKED
    assert find("cuda-arch", loops=("nemo-rl",), env={"TORCH_CUDA_ARCH_LIST": "9.0"}) == ()
    assert find("cuda-arch", loops=("verl",)) == ()


@pytest.mark.parametrize("value", ["{}:", ":{}", "{}::{}"])
def test_an_empty_entry_of_pythonpath_warns(find: Find, tmp_path: Path, value: str) -> None:
    (finding,) = find("pythonpath", env={"PYTHONPATH": value.format(tmp_path, tmp_path)})
    assert finding.id == "preflight.pythonpath.empty-entry"


def test_pythonpath_names_what_is_there(find: Find, tmp_path: Path) -> None:
    assert find("pythonpath", env={"PYTHONPATH": f"{tmp_path}"}) == find("pythonpath") == ()
    (gone,) = find("pythonpath", env={"PYTHONPATH": f"{tmp_path}:{tmp_path / 'gone'}"})
    assert gone.what.endswith(str(tmp_path / "gone"))


def test_the_megatron_that_verls_wrapper_prefers_is_said(find: Find, tmp_path: Path) -> None:
    verl = tmp_path / "verl"
    (verl / WRAPPER).parent.mkdir(parents=True)
    baked = tmp_path / "baked"
    (verl / WRAPPER).write_text(f'export PYTHONPATH="{baked}${{PYTHONPATH:+:${{PYTHONPATH}}}}"\n')
    fields = {"loops": ("verl",), "checkouts": {"verl": str(verl)}}
    assert find("megatron-shadow", **fields) == ()
    trees.package(baked, "megatron.core")
    (finding,) = find("megatron-shadow", **fields)
    assert str(baked) in finding.what
    under_test = {"verl": str(verl), "mcore": str(baked)}
    assert find("megatron-shadow", **{**fields, "checkouts": under_test}) == ()
    direct = step("verl", "python3", "-m", "verl.trainer.main_ppo")
    assert find("megatron-shadow", steps=direct, **{**fields, "loops": ()}) == ()


def test_uv_is_there_or_not_wanted(find: Find, tmp_path: Path, env: dict[str, str]) -> None:
    env["PATH"] = str(tmp_path)
    (missing,) = find("verl-uv", loops=("verl",))
    assert missing.decides is Verdict.BLOCKED
    for off in ({"VERL_USE_UV": "0"}, {"ENGINE": "trtllm"}, {"DEVICE": "npu"}):
        assert find("verl-uv", loops=("verl",), env=off) == ()
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert find("verl-uv", loops=("verl",)) == ()
    checkout = trees.bridge(tmp_path / "bridge")
    (locked,) = find("verl-uv", loops=("verl",), checkouts={"bridge": checkout})
    assert locked.id == "preflight.verl-uv.locked"
    onpath = {"PYTHONPATH": trees.path_of(checkout)}
    assert find("verl-uv", loops=("verl",), checkouts={"bridge": checkout}, env=onpath) == ()


def test_offline_variables_agree(find: Find) -> None:
    assert find("offline", env={"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "true"}) == ()
    assert find("offline") == find("offline", env={"HF_HUB_OFFLINE": "0"}) == ()
    (mixed,) = find("offline", env={"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "0"})
    assert mixed.id == "preflight.offline.mixed" and mixed.where.key == "HF_DATASETS_OFFLINE"
    (odd,) = find("offline", env={"HF_HUB_OFFLINE": "offline"})
    assert odd.id == "preflight.offline.value"
    (caches,) = find("offline", env={"HF_HUB_CACHE": "/a", "TRANSFORMERS_CACHE": "/b"})
    assert caches.id == "preflight.offline.caches"


def test_wandb_without_a_key_blocks(find: Find, env: dict[str, str]) -> None:
    logged = step("nemo-rl", "python", "run.py", "logger.wandb_enabled=True")
    (finding,) = find("wandb", steps=logged)
    assert finding.decides is Verdict.BLOCKED
    assert len(find("wandb", steps=wrapper("trainer.logger=['console','wandb']"))) == 1
    assert find("wandb", steps=step("nemo-rl", "python", "logger.wandb_enabled=False")) == ()
    assert find("wandb", steps=logged, env={"WANDB_MODE": "offline"}) == ()
    assert find("wandb", steps=logged, env={"WANDB_API_KEY": "x"}) == ()
    (Path(env["HOME"]) / ".netrc").write_text("machine api.wandb.ai login user password x\n")
    assert find("wandb", steps=logged) == ()


def test_nsys_is_there_when_it_is_asked_for(find: Find, tmp_path: Path, env: dict[str, str]) -> None:
    env["PATH"] = str(tmp_path)
    (absent,) = find("nsys", steps=wrapper(), gpus=2)
    assert absent.decides is Verdict.BLOCKED and absent.where.key == "PROFILE_STEPS"
    assert find("nsys", steps=wrapper(PROFILE_STEPS="null"), gpus=2) == ()
    assert find("nsys", steps=wrapper(), gpus=0) == ()
    patterns = {"NRL_NSYS_WORKER_PATTERNS": "*policy*"}
    assert find("nsys", loops=("nemo-rl",), env=patterns)[0].where.key == "NRL_NSYS_WORKER_PATTERNS"
    (tmp_path / "nsys").write_text("#!/bin/sh\n")
    (tmp_path / "nsys").chmod(0o755)
    assert find("nsys", steps=wrapper(), gpus=2) == ()


def test_modelopt_is_wanted_by_quantised_steps(find: Find, bare_python: str, tmp_path: Path) -> None:
    quantised = step("nemo-rl", "bash", "tests/functional/modelopt_quant_rollout.sh")
    worker = (Worker(name="W", argv=(bare_python,), loop="nemo-rl"),)
    (absent,) = find("modelopt", steps=quantised, workers=worker)
    assert absent.decides is Verdict.BLOCKED
    assert find("modelopt", steps=step("nemo-rl", "bash", "grpo_megatron.sh"), workers=worker) == ()
    python = make_venv(tmp_path / "with")
    (place,) = (tmp_path / "with" / "lib").glob("python*/site-packages")
    trees.package(place, "modelopt")
    worker = (Worker(name="W", argv=(python,), loop="nemo-rl"),)
    assert find("modelopt", steps=quantised, workers=worker) == ()


def test_secrets_are_named_and_never_shown(find: Find) -> None:
    token = "hf_" + "a1B2" * 8
    command = step("bench", "python", "x.py", f"--auth={token}")
    (on_the_line,) = find("secrets", steps=command)
    assert on_the_line.severity is Severity.WARNING
    (plain,) = find("secrets", env={"MY_SETTING": f"use {token}", "HF_TOKEN": token})
    assert plain.severity is Severity.NOTICE and plain.what.endswith(": MY_SETTING")
    assert token not in repr((on_the_line, plain))
    assert find("secrets", env={"HF_TOKEN": token}, steps=step("bench", "python", "x.py")) == ()
