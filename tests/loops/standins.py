"""Stand-in NeMo-RL and verl: trees with the real interface, whose numbers come from real training of the bench loop.

The wrappers, entry points, ``uv`` and helper scripts behave as the real ones do towards proveout: same words,
same files, same console shapes. With ``STANDIN_TRAIN`` (further words for it) an entry trains with the bench
loop, then and there; else it replays, step by step, the metrics of a bench run made in the same test session
(``STANDIN_METRICS``). ``STANDIN_FAULT`` names what an entry breaks. An entry imports ``megatron.bridge`` from the
tree under test, calls its ``provide()`` where it has one, and hands its ``SETTINGS`` to the training.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

from tests.loops.standin_programs import MAIN_PPO, RUN_GRPO
from tests.plan.conftest import BRIDGE, LORA, MEGATRON, NEMO, SMALL, VERL, WRAPPER, committed, script, write

from proveout.loops.nemo_rl.variants import table
from proveout.loops.verl.variants import table as verl_table

SFT_SECTION = "sft: {max_num_steps: 60, val_period: 10}\n"
CHECKS = """'max(data["train/token_mult_prob_error"]) < 1.05' 'max(data["train/gen_kl_error"]) < 0.001'"""
UV = r"""#!__PYTHON__
import os, sys
words = sys.argv[1:]
if words[:1] == ["run"]:
    words = words[1:]
while words and words[0].startswith("-"):
    words = words[2:] if words[0] in ("--extra", "--group", "--with") else words[1:]
if words[:2] == ["coverage", "run"]:
    words = [w for w in words[2:] if not w.startswith("-")]
    words = words[1:] if words[0] == "-a" else words
python = "__PYTHON__"
if words[0] in ("python", "python3"):
    words = [python, *words[1:]]
elif words[0].endswith(".py"):
    words = [python, *words]
elif words[0] == "pytest":
    words = [python, "-m", "pytest", *words[1:]]
os.execvp(words[0], words)
"""
FLAGS = """
import pytest

KINDS = {"mcore_only": "mcore", "vllm_only": "vllm"}


def pytest_addoption(parser):
    for name in ("--hf-gated", "--mcore-only", "--vllm-only"):
        parser.addoption(name, action="store_true")


def pytest_configure(config):
    for name in ("mcore", "vllm", "hf_gated"):
        config.addinivalue_line("markers", name)


def pytest_collection_modifyitems(config, items):
    wanted = [kind for flag, kind in KINDS.items() if config.getoption(flag)]
    kept = [item for item in items if {mark.name for mark in item.iter_markers()} & set(KINDS.values()) == set(wanted)]
    kept = [item for item in kept if config.getoption("hf_gated") or not item.get_closest_marker("hf_gated")]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
"""
DUMP = """import sys
from runpy import run_module
sys.argv[:1] = ["proveout", "dump"]
run_module("proveout", run_name="__main__")
"""
CHECK = DUMP.replace("dump", "check")


DIAMOND = r"""#!/bin/bash
SCRIPT_DIR=$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" && pwd)
PROJECT_ROOT=$(realpath $SCRIPT_DIR/../..)
set -eou pipefail
EXP_NAME=$(basename $0 .sh)
EXP_DIR=$SCRIPT_DIR/$EXP_NAME
LOG_DIR=$EXP_DIR/logs
CKPT_DIR=$EXP_DIR/ckpts
rm -rf $EXP_DIR
mkdir -p $EXP_DIR
prefix_output() {
  sed "s/^/$1/"
}
train_cmd() {
uv run $PROJECT_ROOT/examples/run_sft.py \
    cluster.gpus_per_node=1 \
    checkpointing.enabled=false \
    $@
}
cd $PROJECT_ROOT
train_cmd logger.log_dir=$LOG_DIR/baseline sft.max_num_steps=2 $@ 2>&1 | prefix_output "[baseline] "
uv run tests/json_dump_tb_logs.py $LOG_DIR/baseline --output_path $EXP_DIR/baseline.json
train_cmd logger.log_dir=$LOG_DIR/mcore sft.max_num_steps=2 checkpointing.checkpoint_must_save_by=0:0:0:1 \
    checkpointing.enabled=true checkpointing.checkpoint_dir=$CKPT_DIR/mcore \
    policy.dtensor_cfg.enabled=false policy.megatron_cfg.enabled=true $@ 2>&1 | prefix_output "[mcore 1step] "
uv run tests/json_dump_tb_logs.py $LOG_DIR/mcore --output_path $EXP_DIR/mcore_1step.json
train_cmd logger.log_dir=$LOG_DIR/mcore sft.max_num_steps=2 \
    checkpointing.enabled=true checkpointing.checkpoint_dir=$CKPT_DIR/mcore \
    policy.dtensor_cfg.enabled=false policy.megatron_cfg.enabled=true $@ 2>&1 | prefix_output "[mcore 2step] "
uv run tests/json_dump_tb_logs.py $LOG_DIR/mcore --output_path $EXP_DIR/mcore_2step.json
"""


def core_scripts() -> dict[str, str]:
    """A functional script for every core variant, with the words that turn on what the level is about."""
    found = {}
    for variant in table().variants:
        if variant.core and variant.script and variant.script not in ("grpo_megatron", "grpo_megatron_lora"):
            words = " ".join(f"{key}={json.dumps(value)}" for key, value in variant.backend.items())
            if variant.backend.get("policy.generation.colocated.enabled") is False:
                words += " policy.generation.colocated.resources.gpus_per_node=1"
            found[variant.script] = script(f"{SMALL} {words}", checks=CHECKS)
    found["modelopt_quant_rollout"] = (
        script(SMALL.replace("max_num_steps=2", "max_num_steps=1"), checks=CHECKS)
        .replace("$EXP_DIR/logs", "$EXP_DIR/w4a8_fake_quant/logs")
        .replace("rm -rf $EXP_DIR && ", "")
    )
    found["grpo_megatron_eagle3_online"] = script(checks="'min(data[\"train/draft_loss\"]) > 0'")
    last_phase = found["grpo_megatron_mbridge_restore"].replace("$EXP_DIR/logs", "$EXP_DIR/logs/phase3_mlm")
    return {**found, "grpo_megatron_mbridge_restore": last_phase, "sft_resume_diamond": DIAMOND}


def nemo_rl(root: Path, **scripts: str) -> Path:
    """A NeMo-RL-like tree; ``scripts`` replaces functional scripts by name."""
    files = {
        **NEMO,
        "examples/run_grpo.py": 'CONFIG = ("configs", "grpo_base.yaml")\n' + RUN_GRPO.partition("\n")[2],
        "examples/run_sft.py": 'CONFIG = ("configs", "grpo_base.yaml")\n' + RUN_GRPO.partition("\n")[2],
        "examples/run_vlm_grpo.py": 'CONFIG = ("configs", "grpo_base.yaml")\n' + RUN_GRPO.partition("\n")[2],
        "examples/configs/grpo_base.yaml": NEMO["examples/configs/grpo_base.yaml"] + SFT_SECTION,
        "tests/unit/conftest.py": FLAGS,
        "tests/unit/models/generation/test_vllm_utils.py": "import pytest\n\npytestmark = [pytest.mark.vllm]\n\n\n"
        "def test_v(): ...\n",
        "tests/json_dump_tb_logs.py": DUMP,
        "tests/check_metrics.py": CHECK,
        "tests/functional/grpo_megatron.sh": script(SMALL, config=MEGATRON, checks=CHECKS),
        "tests/functional/grpo_megatron_lora.sh": LORA.replace(
            "'max(data[\"train/token_mult_prob_error\"]) < 1.05'", CHECKS
        ).replace("/tmp/standin_lora", "$EXP_DIR/ckpts"),
    }
    files |= {f"tests/functional/{name}.sh": text for name, text in scripts.items()}
    return committed(root, files)


MORE_VARIABLES = {
    "SKIP_SAVE_HF_MODEL": "0",
    "USE_FUSED_KERNELS": "False",
    "PPO_MAX_TOKEN_LEN": "2400",
    "FWD_MAX_TOKEN_LEN": "4800",
    "ROLLOUT_QUANTIZATION": "null",
    "LORA_MERGE": "False",
}
VLM_EXAMPLE = """#!/usr/bin/env bash
set -xeuo pipefail
SAVE_FREQ=${SAVE_FREQ:-20}
TEST_FREQ=${TEST_FREQ:-5}
TOTAL_EPOCHS=${TOTAL_EPOCHS:-15}
TRAIN_BATCH_SIZE=${TRAIN_BATCH_SIZE:-512}
PPO_MINI_BATCH_SIZE=${PPO_MINI_BATCH_SIZE:-128}
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \\
    data.train_batch_size=$TRAIN_BATCH_SIZE \\
    trainer.n_gpus_per_node=8 \\
    trainer.save_freq=$SAVE_FREQ \\
    trainer.test_freq=$TEST_FREQ $@
echo "epochs at most $TOTAL_EPOCHS, minibatch $PPO_MINI_BATCH_SIZE"
"""


def verl_scripts() -> dict[str, str]:
    """What the core variants of verl run besides the wrapper, and the wrapper with the variables that they set."""
    first = WRAPPER.index("words=(")
    more = "".join(f"{name}=${{{name}:-{default}}}\n" for name, default in MORE_VARIABLES.items())
    used = 'echo "' + " ".join(f"${name}" for name in MORE_VARIABLES) + '"\n'
    return {
        verl_table().wrapper: WRAPPER[:first] + more + used + WRAPPER[first:],
        "examples/grpo_trainer/run_qwen2_5_vl_7b_megatron.sh": VLM_EXAMPLE,
        **{v.dummy_config: "{}" for v in verl_table().variants if v.dummy_config},
    }


def verl(root: Path) -> Path:
    """A verl-like tree."""
    own = {"verl/__init__.py": "", "verl/trainer/main_ppo.py": MAIN_PPO}
    return committed(root, {**VERL, **verl_scripts(), **own})


def bridge(root: Path) -> Path:
    """A Bridge-like tree whose tests pass."""
    passing = {name: "def test_it():\n    assert True\n" for name in BRIDGE if name.startswith("tests/")}
    core = {"3rdparty/Megatron-LM/megatron/core/__init__.py": "\n"}
    return committed(root, {**BRIDGE, **passing, **core})


def tools(root: Path) -> Path:
    """A directory for PATH: ``uv``, ``nvidia-smi`` with two GPUs, and the interpreter under its usual names."""
    gpu = "0, GPU-{n}, NVIDIA H100, 81559, 0, 550.54"
    smi = "#!/bin/sh\ncase \"$*\" in *--query-gpu*) " + "; ".join(
        f"echo '{gpu.format(n=n).replace('0,', f'{n},', 1)}'" for n in range(8)
    ) + " ;; esac\n"  # fmt: skip
    write(root, {"uv": UV.replace("__PYTHON__", sys.executable), "nvidia-smi": smi})
    for name in ("python", "python3"):
        (root / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for path in root.iterdir():
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return root


def environment(place: Path, metrics: Path, *faults: str) -> dict[str, str]:
    """What ``proveout run`` gets: the tools first on PATH, the metrics to replay, the faults."""
    return {
        "PATH": f"{place}:{os.environ['PATH']}",
        "STANDIN_METRICS": str(metrics),
        "STANDIN_FAULT": ",".join(faults),
        "HF_HUB_OFFLINE": "1",
    }
