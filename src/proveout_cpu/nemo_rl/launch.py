"""``python -m proveout_cpu.nemo_rl.launch --attempt DIR --place DIR [--tiny] [--gpus N] -- COMMAND...``

``--resume CHECKPOINT INTO`` puts a copy of one checkpoint where the run looks for its newest first.

Runs one of NeMo-RL's own commands on the CPU: with a tiny model and data in PLACE (made once, then reused), with a
``uv`` that starts the stack's own interpreter, in a Ray cluster of its own below a short path.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from proveout_cpu import bytecode
from proveout_cpu.nemo_rl import NAME, VARIABLE
from proveout_cpu.nemo_rl.cluster import GPUS

WARM_STEPS, ROWS = 100, 256
DATA = {"sums.jsonl": 9, "sums-to-2.jsonl": 1}
GPU_THERE = 3
NO_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
"""Not passed on: each of a run's dozen processes would compile everything that it imports."""
ENVIRONMENT = {
    VARIABLE: NAME,
    "NEMO_RL_PY_EXECUTABLES_SYSTEM": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TORCHDYNAMO_DISABLE": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "TORCH_CUDA_ARCH_LIST": "9.0",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "OMP_NUM_THREADS": "1",
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    # no idle workers for the logical cores, and time for the others on a busy machine
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_gcs_rpc_server_connect_timeout_s": "120",
    "RAY_gcs_server_request_timeout_seconds": "300",
    "RAY_py_gcs_connect_timeout_s": "120",
    "RAY_health_check_timeout_ms": "60000",
    "WANDB_MODE": "disabled",
}


def main(arguments: list[str]) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m proveout_cpu.nemo_rl.launch")
    parser.add_argument("--attempt", type=Path, required=True)
    parser.add_argument("--place", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--bytecode", type=Path, help="where compiled modules of checkouts are kept")
    parser.add_argument("--resume", type=Path, nargs=2, metavar=("CHECKPOINT", "INTO"))
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)
    if Path("/dev/nvidiactl").exists():
        print("Error: this machine has a GPU: run NeMo-RL on it, not on the CPU platform", file=sys.stderr)
        return GPU_THERE
    if asked.tiny:
        make_model(asked.place / f"model-{asked.seed}", asked.seed)
    for name, largest in DATA.items():
        make_data(asked.place / name, largest)
    if asked.resume:
        take(*asked.resume)
    with tempfile.TemporaryDirectory(prefix="proveout-", dir="/tmp", ignore_cleanup_errors=True) as short:
        env = environment(asked.attempt, Path(short), asked.gpus, asked.bytecode or asked.place / "bytecode")
        print(f"proveout_cpu: NeMo-RL with {asked.gpus} logical GPUs, python {sys.executable}", flush=True)
        done = subprocess.run(asked.command, env=env, stdin=subprocess.DEVNULL, check=False)
    return done.returncode


def environment(attempt: Path, short: Path, gpus: int, compiled: Path) -> dict[str, str]:
    """The command's environment; ``short`` holds Ray's sockets, whose paths may not be long, ``compiled`` the
    compiled modules of checkouts."""
    programs = attempt / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    uv = programs / "uv"
    uv.write_text(Path(__file__).with_name("uv.sh").read_text().replace("@PYTHON@", sys.executable))
    uv.chmod(0o755)
    own = {
        GPUS: str(gpus),
        "PROVEOUT_CPU_RUN": short.name.rpartition("-")[2],
        "PROVEOUT_CPU_RAY_DIR": str(short),
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        ),
        "HF_HOME": str(attempt / "hf"),
        "GIT_CONFIG_GLOBAL": str(attempt / "gitconfig"),
        bytecode.VARIABLE: str(compiled),
    }
    site = str(Path(__file__).with_name("site"))
    path = os.pathsep.join([site, os.environ.get("PYTHONPATH", "")])
    given = {name: value for name, value in os.environ.items() if name not in NO_BYTECODE}
    return {**given, **ENVIRONMENT, **own, "PYTHONPATH": path}


def take(checkpoint: Path, into: Path) -> None:
    """Put a copy of one checkpoint where the run looks for the newest, whatever was there."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(checkpoint, into / checkpoint.name)
    print(f"proveout_cpu: goes on from {checkpoint.name} of {checkpoint.parent}", flush=True)


def make_model(place: Path, seed: int) -> None:
    """A tiny Qwen2 after a short supervised start, unless it is there: the same for the same seed."""
    if (place / "config.json").exists():
        return
    from proveout_cpu.tiny.model import write

    fresh = place.with_name(f".{place.name}-{os.getpid()}")
    write("qwen2", fresh, seed, WARM_STEPS)
    fresh.rename(place)
    print(f"proveout_cpu: made a tiny Qwen2 with {WARM_STEPS} supervised steps at {place}", flush=True)


def make_data(file: Path, largest: int) -> None:
    """Sums of numbers up to ``largest`` for NeMo-RL's ResponseDataset, unless they are there."""
    from proveout_cpu.tiny.sums import write_responses

    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_responses(file, ROWS, largest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
