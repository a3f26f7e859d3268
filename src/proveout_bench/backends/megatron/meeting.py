"""How the processes of one run find each other, and Megatron's own start."""

from __future__ import annotations

import datetime
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

from proveout_bench import ranks

PATIENCE = datetime.timedelta(seconds=300)


def meet(device: str) -> None:
    """Join the process group of all ranks (gloo, or NCCL on GPUs); once a process."""
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    os.environ["LOCAL_RANK"] = str(ranks.rank())
    place = os.environ.get(ranks.MEETING) or str(Path(tempfile.mkdtemp()) / "meeting")
    if device == "cuda":
        torch.cuda.set_device(ranks.rank() % torch.cuda.device_count())
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"file://{place}",
        rank=ranks.rank(),
        world_size=ranks.world(),
        timeout=PATIENCE,
    )


def report_imports() -> None:
    """Rank 0 prints from which files the ranks imported Megatron, and what was repaired for the CPU."""
    import proveout_cpu

    files = {name: str(sys.modules[name].__file__) for name in ("megatron.core", "megatron.bridge")}
    everywhere = ranks.gathered(files)
    if ranks.first():
        for module, file in dict.fromkeys(item for found in everywhere for item in found.items()):
            print(f"[import] worker {module} {file}", flush=True)
        for repair in proveout_cpu.applied():
            print(f"Platform cpu: {repair}", flush=True)


def part() -> None:
    """Leave the process group, if this process is in one."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def import_megatron() -> None:
    """Import Megatron, on a machine without CUDA after its repairs; what it says of fusions is kept off the console."""
    import proveout_cpu.megatron

    proveout_cpu.megatron.apply(state_space=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import megatron.bridge  # noqa: F401
