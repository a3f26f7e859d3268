"""Small source trees that have the shape of the real ones and text of their own."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proveout.loops import nemo_rl, verl

RUN_SH = """#!/bin/bash
SCRIPT_DIR=$( cd -- "$( dirname -- "${{BASH_SOURCE[0]}}" )" && pwd)
PROJECT_ROOT=$(realpath $SCRIPT_DIR/../..)
{trap}
set -eou pipefail
EXP_NAME=$(basename $0 .sh)
EXP_DIR=$SCRIPT_DIR/$EXP_NAME
LOG_DIR=$EXP_DIR/logs
JSON_METRICS=$EXP_DIR/metrics.json
RUN_LOG=$EXP_DIR/run.log
rm -rf $EXP_DIR && mkdir -p $LOG_DIR
cd $PROJECT_ROOT
uv run $PROJECT_ROOT/examples/{entry} \\
    {config} \\
    {words} \\
    logger.log_dir=$LOG_DIR \\
    $@ \\
    2>&1 | tee $RUN_LOG

uv run tests/json_dump_tb_logs.py $LOG_DIR --output_path $JSON_METRICS
uv run tests/check_metrics.py $JSON_METRICS {checks}
"""
MEGATRON = "--config $PROJECT_ROOT/examples/configs/grpo_megatron.yaml"
SMALL = "cluster.gpus_per_node=2 grpo.max_num_steps=2 checkpointing.enabled=false"
T = "'max(data[\"train/token_mult_prob_error\"]) < 1.05'"


def script(
    words: str = SMALL, *, entry: str = "run_grpo.py", config: str = MEGATRON, checks: str = T, trap: str = ""
) -> str:
    """A functional script in the shape of NeMo-RL's."""
    return RUN_SH.format(words=words, entry=entry, config=config, checks=checks, trap=trap)


LORA = script(
    "policy.megatron_cfg.peft.enabled=true cluster.gpus_per_node=2 grpo.max_num_steps=3 "
    "checkpointing.enabled=true checkpointing.checkpoint_dir=/tmp/standin_lora",
    trap='trap "rm -rf /tmp/standin_lora" EXIT',
)
BASE_YAML = """
grpo: {max_num_steps: 100, num_prompts_per_step: 8, num_generations_per_prompt: 4, val_period: 10, val_at_start: false}
loss_fn: {force_on_policy_ratio: false}
data: {shuffle: true}
checkpointing: {enabled: true, save_period: 10, checkpoint_dir: results, checkpoint_must_save_by: null}
policy:
  model_name: some/model
  tokenizer: {name: "${policy.model_name}"}
  train_global_batch_size: 8
  train_micro_batch_size: 1
  logprob_batch_size: ${policy.train_micro_batch_size}
  dtensor_cfg: {enabled: true, peft: {enabled: false}}
  megatron_cfg:
    enabled: false
    tensor_model_parallel_size: 1
    pipeline_model_parallel_size: 1
    context_parallel_size: 1
    expert_model_parallel_size: 1
    expert_tensor_parallel_size: 1
    sequence_parallel: false
    force_reconvert_from_hf: false
    peft: {enabled: false, dim: 8}
  generation:
    backend: vllm
    refit_transport: null
    colocated: {enabled: true, resources: {gpus_per_node: null, num_nodes: null}}
    vllm_cfg: {async_engine: false, enforce_eager: false}
    mcore_generation_config: {cuda_graph_impl: local}
logger: {log_dir: logs, tensorboard_enabled: false, wandb_enabled: false}
cluster: {gpus_per_node: 1, num_nodes: 1}
"""
MEGATRON_YAML = """
defaults: grpo_base.yaml
policy:
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true}
"""
ENTRY = 'import os\nDEFAULT = os.path.join(os.path.dirname(__file__), "configs", "{config}")\n'
NEMO = {
    "nemo_rl/__init__.py": "",
    "nemo_rl/models/policy.py": 'KEYS = ["refit_cfg", "encoding", "verify_samples_per_payload", "dim"]\n',
    "examples/run_grpo.py": ENTRY.format(config="grpo_base.yaml"),
    "examples/run_sft.py": ENTRY.format(config="grpo_base.yaml"),
    "examples/run_vlm_grpo.py": ENTRY.format(config="grpo_base.yaml"),
    "examples/configs/grpo_base.yaml": BASE_YAML,
    "examples/configs/grpo_megatron.yaml": MEGATRON_YAML,
    "examples/configs/grpo_math_1B_megatron.yaml": MEGATRON_YAML,
    "examples/configs/vlm_grpo_3B_megatron.yaml": MEGATRON_YAML,
    "examples/configs/recipes/llm/grpo-small-1n8g-megatron.yaml": "defaults: ../../grpo_megatron.yaml\n"
    "cluster: {gpus_per_node: 8}\npolicy: {megatron_cfg: {expert_model_parallel_size: 2}}\n",
    "examples/configs/recipes/llm/grpo-large-2n8g-megatron.yaml": "defaults: ../../grpo_megatron.yaml\n"
    "cluster: {gpus_per_node: 8, num_nodes: 2}\npolicy: {megatron_cfg: {expert_model_parallel_size: 4}}\n",
    "tests/functional/grpo_megatron.sh": script(),
    "tests/functional/grpo_megatron_lora.sh": LORA,
    "tests/functional/grpo_megatron_generation.sh": script(SMALL + " policy.generation.backend=megatron"),
    "tests/functional/vlm_grpo.sh": script(entry="run_vlm_grpo.py", config=""),
    "tests/functional/dpo_megatron_lora.sh": script("policy.megatron_cfg.peft.enabled=true " + SMALL, config=""),
    "tests/functional/sft_resume_diamond.sh": script(
        SMALL + " policy.megatron_cfg.enabled=true policy.dtensor_cfg.enabled=false", entry="run_sft.py", config=""
    ),
    "tests/unit/conftest.py": 'FLAGS = ["--hf-gated", "--mcore-only", "--vllm-only"]\n',
    "tests/unit/models/megatron/test_megatron_setup.py": "import pytest\n\n\n@pytest.mark.mcore\n"
    "class TestSetup:\n    def test_a(self): ...\n    def test_b(self): ...\n",
    "tests/unit/models/policy/test_megatron_worker.py": "import pytest\n\npytestmark = pytest.mark.mcore\n\n\n"
    "def test_c(): ...\n\n\n@pytest.mark.hf_gated\ndef test_d(): ...\n",
    "tests/unit/utils/test_checkpoint.py": "def test_save(): ...\n",
    "tests/unit/utils/test_native_checkpoint.py": "def test_native(): ...\n",
    "tests/unit/utils/test_weight_transfer_stream.py": "def test_stream(): ...\n",
    "tests/unit/weight_sync/test_sync.py": "def test_sync(): ...\n",
    "tests/unit/models/generation/test_vllm_utils.py": "import pytest\n\npytestmark = [pytest.mark.vllm]\n\n\n"
    "async def test_v(): ...\n",
    "pyrefly.toml": "",
    "pyproject.toml": '[project]\nname = "standin"\n[tool.uv]\nconflicts = [[{extra = "mcore"}, {extra = "vllm"}]]\n',
}  # fmt: skip
WRAPPER = """#!/usr/bin/env bash
set -xeuo pipefail
export PYTHONPATH="/workspace/Megatron-LM${PYTHONPATH:+:${PYTHONPATH}}"
NUM_GPUS=${NUM_GPUS:-8}
ENGINE=${ENGINE:-"vllm"}
LAUNCH=(python3)
if [ "${VERL_USE_UV:-1}" != 0 ] && [ "${DEVICE:-gpu}" = gpu ]; then
    LAUNCH=(uv run --frozen python3)
fi
MODEL_ID=${MODEL_ID:-Qwen/Qwen2.5-0.5B}
MODEL_PATH=${MODEL_PATH:-${HOME}/models/${MODEL_ID}}
USE_DUMMY_MODEL=${USE_DUMMY_MODEL:-False}
DUMMY_MODEL_PATH=${DUMMY_MODEL_PATH:-${HOME}/dummy}
TRAIN_FILES=${TRAIN_FILES:-${HOME}/train.parquet}
ADV_ESTIMATOR=${ADV_ESTIMATOR:-gae}
VAL_BEFORE_TRAIN=${VAL_BEFORE_TRAIN:-False}
TEST_FREQ=${TEST_FREQ:--1}
RESUME_MODE=${RESUME_MODE:-disable}
SAVE_FREQ=${SAVE_FREQ:--1}
TOTAL_TRAIN_STEPS=${TOTAL_TRAIN_STEPS:-1}
MICRO_BSZ=${MICRO_BSZ:-2}
bsz=$((MICRO_BSZ * 4))
LORA_RANK=${LORA_RANK:-0}
LORA_TARGET_MODULES=${LORA_TARGET_MODULES:-"['linear_qkv','linear_proj']"}
COMMON_PP=${COMMON_PP:-2}
COMMON_VPP=${COMMON_VPP:-2}
COMMON_CP=${COMMON_CP:-2}
COMMON_TP=${COMMON_TP:-2}
COMMON_EP=${COMMON_EP:-1}
COMMON_ETP=${COMMON_ETP:-1}
INFER_TP=${INFER_TP:-$COMMON_TP}
ALL_OFFLOAD=${ALL_OFFLOAD:-True}
RM_PARAM_OFFLOAD=${RM_PARAM_OFFLOAD:-$ALL_OFFLOAD}
USE_MBRIDGE=${USE_MBRIDGE:-True}
VANILLA_MBRIDGE=${VANILLA_MBRIDGE:-False}
VALUE_VANILLA_MBRIDGE=${VALUE_VANILLA_MBRIDGE:-$VANILLA_MBRIDGE}
USE_MEGATRON_FSDP=${USE_MEGATRON_FSDP:-False}
USE_REMOVE_PADDING=${USE_REMOVE_PADDING:-False}
PROFILE_STEPS=${PROFILE_STEPS:-[1]}
BRAND_NEW=${BRAND_NEW:-1}
words=(
    algorithm.adv_estimator=${ADV_ESTIMATOR}
    data.train_files="${TRAIN_FILES}"
    data.train_batch_size=${bsz}
    actor_rollout_ref.model.path="${MODEL_PATH}"
    actor_rollout_ref.model.lora.rank=${LORA_RANK}
    actor_rollout_ref.model.lora.target_modules=${LORA_TARGET_MODULES}
    actor_rollout_ref.model.use_remove_padding=${USE_REMOVE_PADDING}
    actor_rollout_ref.actor.megatron.use_mbridge=${USE_MBRIDGE}
    actor_rollout_ref.actor.megatron.vanilla_mbridge=${VANILLA_MBRIDGE}
    actor_rollout_ref.actor.megatron.use_megatron_fsdp=${USE_MEGATRON_FSDP}
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$COMMON_TP
    actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=$COMMON_PP
    actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=$COMMON_VPP
    actor_rollout_ref.actor.megatron.context_parallel_size=$COMMON_CP
    actor_rollout_ref.actor.megatron.expert_model_parallel_size=$COMMON_EP
    actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=$COMMON_ETP
    actor_rollout_ref.actor.megatron.param_offload=${ALL_OFFLOAD}
    actor_rollout_ref.rollout.name="${ENGINE}"
    actor_rollout_ref.rollout.tensor_model_parallel_size=$INFER_TP
    critic.megatron.vanilla_mbridge=${VALUE_VANILLA_MBRIDGE}
    +critic.optim.override_optimizer_config.offload=False
    reward.reward_model.enable=True
    trainer.n_gpus_per_node=${NUM_GPUS}
    trainer.val_before_train=${VAL_BEFORE_TRAIN}
    trainer.test_freq="${TEST_FREQ}"
    trainer.save_freq="${SAVE_FREQ}"
    trainer.resume_mode="${RESUME_MODE}"
    trainer.total_training_steps="${TOTAL_TRAIN_STEPS}"
    global_profiler.steps=$PROFILE_STEPS
)
"${LAUNCH[@]}" -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' "${words[@]}" $@
"""
ENGINE_YAML = """
tensor_model_parallel_size: 1
pipeline_model_parallel_size: 1
virtual_pipeline_model_parallel_size: null
context_parallel_size: 1
expert_model_parallel_size: 1
expert_tensor_parallel_size: null
param_offload: false
use_mbridge: true
vanilla_mbridge: false
use_megatron_fsdp: false
override_transformer_config: {attention_backend: flash}
"""
VERL = {
    "verl/trainer/main_ppo.py": "",
    "verl/trainer/config/ppo_megatron_trainer.yaml": "defaults:\n  - ppo_trainer\n"
    "  - override model_engine: megatron\n  - _self_\n",
    "verl/trainer/config/ppo_trainer.yaml": """
defaults:
  - model_engine: dp
  - actor@actor_rollout_ref.actor: ${model_engine}_actor
  - critic@critic: ${model_engine}_critic
  - _self_
algorithm: {adv_estimator: gae}
data: {train_files: null, train_batch_size: 1}
actor_rollout_ref:
  ref:
    megatron:
      override_transformer_config: ${oc.select:actor_rollout_ref.actor.megatron.override_transformer_config,{}}
  model: {path: null, use_remove_padding: true, lora: {rank: 0, target_modules: all}}
  rollout: {name: "???", n: 1, tensor_model_parallel_size: 1, enforce_eager: false}
reward: {reward_model: {enable: false}}
trainer: {nnodes: 1, n_gpus_per_node: 8, val_before_train: true, test_freq: -1, save_freq: -1, resume_mode: auto,
  total_training_steps: null, default_local_dir: checkpoints}
global_profiler: {steps: null}
ray_kwargs: {ray_init: {num_cpus: null}}
""",
    "verl/trainer/config/model_engine/dp.yaml": "# @package _global_\nmodel_engine: dp\n",
    "verl/trainer/config/model_engine/megatron.yaml": "# @package _global_\nmodel_engine: megatron\n",
    "verl/trainer/config/optim/megatron.yaml": "lr: 1e-6\noverride_optimizer_config: {}\n",
    "verl/trainer/config/engine/megatron.yaml": ENGINE_YAML,
    "verl/trainer/config/actor/actor.yaml": "strategy: ???\nuse_dynamic_bsz: false\nppo_micro_batch_size_per_gpu: 1\n",
    "verl/trainer/config/actor/dp_actor.yaml": "defaults:\n  - actor\n  - _self_\nstrategy: fsdp\n",
    "verl/trainer/config/actor/megatron_actor.yaml": "defaults:\n  - ../optim@optim: megatron\n"
    "  - ../engine@megatron: megatron\n  - actor\n  - _self_\nstrategy: megatron\n",
    "verl/trainer/config/critic/dp_critic.yaml": "strategy: fsdp\n",
    "verl/trainer/config/critic/megatron_critic.yaml": "defaults:\n  - ../optim@optim: megatron\n"
    "  - ../engine@megatron: megatron\n  - _self_\nstrategy: megatron\n",
    "tests/special_e2e/run_ppo_trainer_megatron.sh": WRAPPER,
}  # fmt: skip
_BRIDGE_PY = """
from megatron.bridge.models.conversion.model_bridge import MegatronModelBridge

NAME = "{arch}"


@MegatronModelBridge.register_bridge(source=NAME, target=object)
class Bridge:
    def mapping_registry(self): ...
"""
PACKAGE = "src/megatron/bridge"
BRIDGE = {
    f"{PACKAGE}/__init__.py": "",
    **{
        f"{PACKAGE}/{name}": "X = 1\n"
        for name in (
            *(f"models/conversion/{part}.py" for part in (
                "auto_bridge", "model_bridge", "param_mapping", "mapping_registry", "peft_bridge", "quant_bridge",
                "quantization_utils", "modelopt_utils")),
            "peft/lora.py", "training/post_training/checkpointing.py", "models/model_provider.py",
            "models/gpt_provider.py", "models/mla_provider.py", "models/transformer_config.py", "models/config.py",
            "models/gpt/builder.py", "models/common/base.py", "models/hybrid/provider.py", "models/mamba/builder.py",
            "models/hf_pretrained/causal_lm.py", "training/checkpointing.py", "training/model_load_save.py",
            "training/setup.py", "training/initialize.py", "training/state.py", "training/config.py",
            "training/optim.py", "training/losses.py", "training/mixed_precision.py", "training/utils/train_utils.py",
            "training/comm_overlap.py", "training/flex_dispatcher_backend.py", "training/utils/pg_utils.py",
            "training/fsdp_compat.py", "training/utils/packed_seq_utils.py", "data/packing/packed.py",
            "utils/cuda_graph.py", "data/loaders.py", "recipes/common.py", "perf_recipes/env.py",
            "diffusion/base.py", "inference/text.py", "training/tokenizers/tokenizer.py", "training/pretrain.py",
        )
    },
    f"{PACKAGE}/models/llama/llama_bridge.py": _BRIDGE_PY.format(arch="LlamaForCausalLM"),
    f"{PACKAGE}/models/seeing/seeing_bridge.py": _BRIDGE_PY.format(arch="Qwen2_5_VLForConditionalGeneration"),
    f"{PACKAGE}/models/hearing/hearing_bridge.py": _BRIDGE_PY.format(arch="Qwen2AudioForConditionalGeneration"),
    f"{PACKAGE}/models/experts/experts_bridge.py": _BRIDGE_PY.format(arch="OlmoeForCausalLM") + "num_moe_experts = 8\n",
    "tests/unit_tests/models/test_model_provider_mixin.py": "",
    "tests/unit_tests/models/test_param_mapping.py": "",
    "tests/unit_tests/models/test_autobridge_registration_matrix.py": "",
    "tests/unit_tests/models/llama/test_llama_bridge.py": "",
    "tests/unit_tests/peft/test_lora.py": "",
    "docs/readme.txt": "text",
    "3rdparty/Megatron-LM/megatron/core/__init__.py": "",
}  # fmt: skip


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files under ``root``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def git(root: Path, *words: str) -> str:
    """Run git as a test author; what it printed."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main",
                "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false")  # fmt: skip
    done = subprocess.run(
        ["git", *identity, "-C", str(root), *words], check=True, capture_output=True, text=True
    )
    return done.stdout


def committed(root: Path, files: dict[str, str]) -> Path:
    """A git tree with one commit of ``files``."""
    write(root, files)
    git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", "one")
    return root


def digest(root: Path) -> str:
    """A hash over all names, modes and bytes under ``root``, the index and all else of .git included."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        total.update(os.fsencode(path) + str(path.lstat().st_mode).encode())
        if path.is_symlink():
            total.update(os.fsencode(path.readlink()))
        elif path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BRIDGE_REPO", "MCORE_REPO", "NEMO_RL_REPO", "VERL_REPO", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    nemo_rl._tree.cache_clear()
    verl._tree.cache_clear()


@pytest.fixture
def bridge(tmp_path: Path) -> Path:
    """A committed Bridge tree."""
    return committed(tmp_path / "bridge", BRIDGE)


@pytest.fixture
def nemo(tmp_path: Path) -> Path:
    """A committed NeMo-RL tree."""
    return committed(tmp_path / "nemo", NEMO)


@pytest.fixture
def verl_tree(tmp_path: Path) -> Path:
    """A committed verl tree."""
    return committed(tmp_path / "verl", VERL)


@pytest.fixture
def checkouts(bridge: Path, nemo: Path, verl_tree: Path) -> dict[str, str]:
    """All three, by role."""
    return {"bridge": str(bridge), "nemo-rl": str(nemo), "verl": str(verl_tree)}


@pytest.fixture
def run_git() -> Callable[..., str]:
    """The git helper."""
    return git


@pytest.fixture
def hashed() -> Callable[[Path], str]:
    """The tree hash."""
    return digest


@pytest.fixture
def write_files() -> Callable[[Path, dict[str, str]], Path]:
    """The file writer."""
    return write


@pytest.fixture
def functional_script() -> Callable[..., str]:
    """The maker of functional scripts."""
    return script
