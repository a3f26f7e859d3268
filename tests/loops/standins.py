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

from tests.plan.conftest import BRIDGE, LORA, MEGATRON, NEMO, SMALL, VERL, WRAPPER, committed, script, write

from proveout.loops.nemo_rl.variants import table
from proveout.loops.verl.variants import table as verl_table

SFT_SECTION = "sft: {max_num_steps: 60, val_period: 10}\n"
CHECKS = """'max(data["train/token_mult_prob_error"]) < 1.05' 'max(data["train/gen_kl_error"]) < 0.001'"""
COMMON = r'''
import json, os, struct, subprocess, sys, tempfile, time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

FAULTS = set(os.environ.get("STANDIN_FAULT", "").split(",")) - {""}


def recorded(steps, checkpoints="", resume=False):
    """The metrics behind this run, tag -> step -> value: trained here, or those of a run of the same session."""
    path = Path(os.environ["STANDIN_METRICS"])
    if "STANDIN_TRAIN" in os.environ:
        path = trained(steps, checkpoints, resume)
    table = json.loads(path.read_text())
    return {tag: {int(step): float(value) for step, value in points.items()} for tag, points in table.items()}


def trained(steps, checkpoints, resume):
    place = Path(tempfile.mkdtemp(prefix="standin-"))
    words = [*os.environ["STANDIN_TRAIN"].split(), *getattr(import_module("megatron.bridge"), "SETTINGS", ())]
    if checkpoints:
        words += [f"checkpoint.dir={checkpoints}/bench", "checkpoint.every=1"]
    if resume:
        words.append("resume=auto")
    for arguments in (["proveout_bench", "grpo", f"output_dir={place}", f"max_steps={steps}", *words],
                      ["proveout", "dump", f"{place}/tensorboard", "--output_path", f"{place}/metrics.json"]):
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the training behind this run failed: {(done.stderr or done.stdout)[-2000:]}")
    return place / "metrics.json"


def nested(words, base):
    """The base configuration with ``key=value`` words put in."""
    for word in words:
        key, equals, text = word.lstrip("+").partition("=")
        if not equals:
            continue
        try:
            value = json.loads(text.replace("True", "true").replace("False", "false"))
        except ValueError:
            value = text.strip("\"'")
        place = base
        *parents, last = key.split(".")
        for part in parents:
            place = place.setdefault(part, {}) if isinstance(place.get(part, {}), dict) else place
        place[last] = value
    return base


def origin(module):
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    return found.origin if found else None


def worker(text, name="MegatronPolicyWorker"):
    print(f"\x1b[36m({name} pid=4242)\x1b[0m {text}", flush=True)


def workers_import():
    if "silent" in FAULTS:
        return
    """What the workers' own warnings name: the files that this process really finds."""
    for module in ("megatron.bridge", "megatron.core"):
        path = origin(module)
        if "worker-import" in FAULTS:
            path = f"/opt/venv/lib/python3.11/site-packages/{module.replace('.', '/')}/__init__.py"
        if path:
            worker(f"{path}:3: UserWarning: Transformer Engine is not installed", "IsolatedWorkerInitializer")


BEFORE = {
    "no-gpus": ValueError("Total available GPUs 0 is less than total desired GPUs 2"),
    "no-data": FileNotFoundError(2, "No such file or directory", "/data/gsm8k/train.parquet"),
    "no-space": OSError(28, "No space left on device", "/cache/hub/models--tiny"),
    "no-module": ModuleNotFoundError("No module named 'modelopt'"),
    "no-vllm": ModuleNotFoundError("No module named 'vllm'"),
    "no-ray": ConnectionError("Could not find any running Ray instance. Please specify the one to connect to"),
    "no-reward-model": OSError("/models/reward is not a local folder and is not a valid model identifier listed on "
                               "'https://huggingface.co/models'"),
    "two-launchers": RuntimeError("Please don't set ROCR_VISIBLE_DEVICES when HIP/CUDA_VISIBLE_DEVICES is set"),
    "container": ImportError("/lib/libc.so.6: version `GLIBC_2.38' not found (required by /opt/lib/te.so)"),
}
CORE = "3rdparty/Megatron-LM/megatron/core"
BUILDING = {
    "megatron-init": ("src/megatron/bridge/training/initialize.py", "initialize_megatron",
                      "RuntimeError: world size (2) is not divisible by tensor parallel size (4)"),
    "provider": ("src/megatron/bridge/models/gpt_provider.py", "provide",
                 "AttributeError: 'GPTModelProvider' object has no attribute 'finalize'"),
    "hf-import": ("src/megatron/bridge/models/conversion/auto_bridge.py", "load_hf_weights",
                  "KeyError: 'model.layers.0.self_attn.q_norm.weight'"),
    "peft": ("src/megatron/bridge/peft/lora.py", "transform",
             "AttributeError: 'LoRA' object has no attribute 'exclude'"),
    "ddp": (CORE + "/distributed/distributed_data_parallel.py", "__init__",
            "AssertionError: bucket size is no multiple of the data parallel size"),
    "fsdp": (CORE + "/distributed/fsdp/mcore_fsdp_adapter.py", "__init__",
             "TypeError: got an unexpected keyword argument 'sharding'"),
    "optimizer": (CORE + "/optimizer/__init__.py", "get_megatron_optimizer",
                  "AttributeError: 'OptimizerConfig' object has no attribute 'decoupled'"),
    "checkpoint-manager": ("src/megatron/bridge/training/checkpointing.py", "init_checkpointing_context",
                           "RuntimeError: sharded state dict holds no entry for decoder.final_layernorm"),
}
STEPPING = {
    "hf-export": ("src/megatron/bridge/models/conversion/model_bridge.py", "stream_weights_megatron_to_hf",
                  "ValueError: Unrecognized weight: decoder.layers.0.mlp.router.bias"),
    "raises": ("src/megatron/bridge/training/train.py", "train_step",
               "RuntimeError: CUDA error: device-side assert triggered"),
}


def stop_before_build():
    for name in BEFORE.keys() & FAULTS:
        raise BEFORE[name]


def broken(stages):
    """A worker's traceback for what is to break, and the driver's that follows from it."""
    for name in stages.keys() & FAULTS:
        file, function, error = stages[name]
        root = origin("megatron.bridge").partition("/src/megatron/")[0]
        worker("Traceback (most recent call last):")
        worker(f'  File "{root}/{file}", line 3, in {function}')
        worker(error)
        raise RuntimeError(f"worker failed: {error}")


def build():
    """The provider of the Bridge under test is built."""
    worker("Before init from HF AutoModel, memory allocated (GB): 0.0")
    getattr(import_module("megatron.bridge"), "provide", lambda: None)()
    broken({name: BUILDING[name] for name in ("megatron-init", "provider", "hf-import", "peft")})
    worker(" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 77568")
    broken(BUILDING)


def said_at_the_end():
    """What Ray, Python and torch print while everything is taken down."""
    if "noise" in FAULTS:
        print("/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There "
              "appear to be 1 leaked shared_memory objects to clean up at shutdown", flush=True)
        worker("[rank0]:[W1129 14:50:01.1 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not "
               "called before program exit, which can leak resources.")
'''
RUN_GRPO = (
    """"configs"; "CONFIG_NAME"
"""
    + COMMON
    + r"""
try:
    import google_crc32c
    crc = google_crc32c.value
except ImportError:
    crc = None


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128]); number >>= 7
    return out + bytes([number])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def frame(payload):
    def masked(data):
        value = crc(data)
        return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def event(step, tag, value):
    summary = field(1, field(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))
    wall = varint(1 << 3 | 1) + struct.pack("<d", time.time())
    return frame(wall + varint(2 << 3) + varint(step) + field(5, summary))


class Events:
    def __init__(self, log_dir):
        log_dir = Path(log_dir)
        number = 1 + len(list(log_dir.glob("exp_*")))
        folder = log_dir / f"exp_{number:03d}" / "tensorboard"
        folder.mkdir(parents=True)
        self.file = (folder / f"events.out.tfevents.{int(time.time())}.host.1.0").open("wb")
        self.file.write(frame(varint(1 << 3 | 1) + struct.pack("<d", time.time()) + field(3, b"brain.Event:2")))

    def add(self, step, tag, value):
        self.file.write(event(step, tag, value)); self.file.flush()


def main():
    words = [word for word in sys.argv[1:] if "=" in word and not word.startswith("--")]
    base = {"policy": {"model_name": "tiny", "megatron_cfg": {"enabled": True, "peft": {"enabled": False}},
            "generation": {"backend": "vllm", "colocated": {"enabled": True}, "vllm_cfg": {"enforce_eager": False}}},
            "grpo": {"max_num_steps": 2}, "sft": {"max_num_steps": 2},
            "checkpointing": {"enabled": False, "checkpoint_dir": "results"},
            "logger": {"log_dir": "logs"}, "cluster": {"gpus_per_node": 1}}
    config = nested(words, base)
    if "dtensor" in FAULTS:
        config["policy"]["megatron_cfg"]["enabled"] = False
    print("Final config:")
    print("MasterConfig(" + ", ".join(f"{key}={value!r}" for key, value in config.items()) + ")", flush=True)
    print("2026-11-29 14:45:12,606\tINFO worker.py:2012 -- Started a local Ray instance.")
    stop_before_build()
    print("\n> Setting up model and training...", flush=True)
    workers_import()
    build()
    if "cached-import" in FAULTS:
        worker("Checkpoint already exists at /cache/tiny. Skipping import.")
    if config["policy"]["megatron_cfg"]["peft"]["enabled"]:
        worker("  Trainable parameters: " + ("0" if "nothing-trainable" in FAULTS else "131,072"))
    section = Path(sys.argv[0]).stem.removeprefix("run_").removeprefix("vlm_")
    total = config[section]["max_num_steps"]
    saving, first = config["checkpointing"], 1
    saved = sorted(Path(saving["checkpoint_dir"]).glob("step_*")) if saving["enabled"] else []
    if saved and "restarts" not in FAULTS:
        first = int(saved[-1].name.partition("_")[2]) + 1
        worker(f"  successfully loaded checkpoint from {saved[-1]}/policy/weights [ t 0/1, p 0/1 ] at iteration 0")
    if saving.get("checkpoint_must_save_by"):
        total = first
    last = total - 1 if {"short", "timeout-0"} & FAULTS else total
    table = recorded(total, saving["checkpoint_dir"] if saving["enabled"] else "", first > 1)
    table["train/num_unmasked_tokens"] = table["train/global_valid_toks"]
    table["train/draft_loss"] = table["train/approx_entropy"]
    table["train/num_valid_samples"] = table["train/global_valid_seqs"]
    sparse = "sparse" in str(config["policy"]["generation"].get("refit_transport"))
    if sparse:
        table["refit/delta/changed_pct"] = {step: 100 * value for step, value in table["train/weight_delta"].items()}
    events = Events(config["logger"]["log_dir"])
    for step in range(first, last + 1):
        print(f"\n========================= Step {step}/{total} =========================", flush=True)
        for tag, points in table.items():
            if step not in points or tag.startswith("timing/setup"):
                continue
            value = points[step]
            if f"nan={tag}" in FAULTS or ("nan" in FAULTS and tag == "train/grad_norm" and step == 1):
                value = float("nan")
            if "flat-reward" in FAULTS and tag == "train/reward":
                value = points[1]
            if "frozen" in FAULTS and tag in ("train/kl_penalty", "train/weight_delta"):
                value = 0.0
            if "constant-logprobs" in FAULTS and tag == "train/approx_entropy":
                value = points[1]
            if "mismatch" in FAULTS and tag == "train/token_mult_prob_error" and step == last:
                value = 1.3
            if "zero-gradient" in FAULTS and tag == "train/grad_norm":
                value = 0.0
            if "no-refit-timing" in FAULTS and "prepare_for_generation" in tag:
                continue
            events.add(step, tag, value)
        if sparse:
            worker("REFIT_ZMQ_TIMING export_pull_s=0.41 encode_s=0.22 transfer_s=0.013 receiver_zmq_decode_s=0.11 "
                   "receiver_sparse_apply_s=0.05")
        print(f"  - Draft Loss: {table['train/draft_loss'][step]:.4f}")
        print(f"  - Avg Reward: {table['train/reward'][step]:.4f}")
        broken(STEPPING)
        if "refit-failed" in FAULTS:
            print("Updating weights for the generation policy failed during refit")
        generation = config["policy"]["generation"]
        graphs = generation.get("mcore_generation_config", {}).get("cuda_graph_impl") != "none"
        if generation["backend"] == "megatron" and ({"illegal-memory"} if graphs else {"illegal-anyway"}) & FAULTS:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
    if config["checkpointing"]["enabled"]:
        folder = Path(config["checkpointing"]["checkpoint_dir"], f"step_{last}", "policy", "weights")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.pt").write_bytes(b"weights")
    if "timeout-0" in FAULTS:
        print("Timeout has been reached, stopping training early")
    if last == total:
        print("Max number of steps has been reached, stopping training early", flush=True)
    said_at_the_end()


main()
"""
)
MAIN_PPO = (
    COMMON
    + r"""
import pprint


def runner(text):
    for line in text.split("\n"):
        print(f"\x1b[36m(TaskRunnerV1 pid=77)\x1b[0m {line}", flush=True)


def bar(done, total, began="00:03<00:00"):
    print(f"\x1b[36m(TaskRunnerV1 pid=77)\x1b[0m Training Progress: {100 * done // total:3d}%|####| "
          f"{done}/{total} [{began}, 3.00s/it]", flush=True)


def main():
    megatron = {"use_mbridge": True, "vanilla_mbridge": False, "use_megatron_fsdp": False}
    base = {"actor_rollout_ref": {"actor": {"megatron": megatron}, "model": {"lora": {"rank": 0}},
            "rollout": {"enforce_eager": False}}, "reward": {"reward_model": {"enable": False}},
            "trainer": {"total_training_steps": 1, "save_freq": -1, "resume_mode": "disable"}, "critic": {}}
    config = nested(sys.argv[1:], base)
    if "vanilla" in FAULTS:
        megatron["vanilla_mbridge"] = True
    print("2026-11-29 13:36:43,720\tINFO worker.py:2012 -- Started a local Ray instance.")
    runner(pprint.pformat(config))
    stop_before_build()
    workers_import()
    build()
    if megatron["vanilla_mbridge"]:
        runner("The legacy mbridge backend selected by vanilla_mbridge=True is deprecated")
    if config["actor_rollout_ref"]["model"]["lora"]["rank"]:
        worker("  Trainable parameters: " + ("0" if "nothing-trainable" in FAULTS else "131,072"), "WorkerDict")
    trainer = config["trainer"]
    total, first = int(trainer["total_training_steps"]), 1
    checkpoints = Path(trainer["default_local_dir"])
    tracker = checkpoints / "latest_checkpointed_iteration.txt"
    if trainer["resume_mode"] == "auto" and tracker.exists() and "restarts" not in FAULTS:
        saved = int(tracker.read_text())
        first = saved + 1
        place = checkpoints / f"global_step_{saved}"
        runner(f"INFO:2026-11-29 14:00:28,620:Resuming from {place}, setting global step to {saved}")
        if "optimizer-lost" not in FAULTS:
            worker(f"INFO:[Rank 0] Loaded optimizer checkpoint from {place}/actor/optimizer/dist_ckpt", "WorkerDict")
    elif trainer["resume_mode"] == "auto":
        runner("Training from scratch")
    if "full-bar" in FAULTS or ("full-bar-on-resume" in FAULTS and first > 1):
        bar(total, total, "00:00<?")
        return
    names = {"actor/loss": "train/loss", "actor/pg_loss": "train/loss", "actor/grad_norm": "train/grad_norm",
             "actor/lr": "train/lr", "actor/entropy": "train/approx_entropy", "actor/kl_loss": "train/kl_penalty",
             "critic/score/mean": "train/reward", "critic/rewards/mean": "train/reward",
             "timing_s/step": "timing/train/total_step_time"}
    table = recorded(total, checkpoints if int(trainer["save_freq"]) > 0 else "", first > 1)
    last = total - 1 if "short" in FAULTS else total
    for step in range(first, last + 1):
        values = {tag: table[source][step] for tag, source in names.items()}
        if "nan" in FAULTS:
            values["actor/pg_loss"] = float("nan")
        for tag in values:
            values[tag] = float("nan") if f"nan={tag}" in FAULTS else values[tag]
        for tag in ("critic/score/mean", "critic/rewards/mean") if "flat-reward" in FAULTS else ():
            values[tag] = table[names[tag]][1]
        if "frozen" in FAULTS:
            values["actor/kl_loss"] = 0.0
        if "constant-logprobs" in FAULTS:
            values["actor/entropy"] = table["train/approx_entropy"][1]
        if "zero-gradient" in FAULTS:
            values["actor/grad_norm"] = 0.0
        runner(f"step:{step} - " + " - ".join(f"{tag}:{value!r}" for tag, value in values.items())
               + f" - training/global_step:{step}")
        bar(step, total)
        broken(STEPPING)
        if int(trainer["save_freq"]) > 0:
            (checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True, exist_ok=True)
            (checkpoints / f"global_step_{step}" / "actor" / "model.pt").write_bytes(b"weights")
            tracker.write_text(str(step))
    said_at_the_end()


main()
"""
)
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
