"""The programs of the stand-ins: NeMo-RL's example entries and verl's trainer, as text that the trees hold."""

from __future__ import annotations

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
