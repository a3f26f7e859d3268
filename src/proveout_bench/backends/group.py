"""How the ranks of backend ``hf`` find each other."""

from __future__ import annotations

import datetime
import os

from proveout_bench import ranks

PATIENCE = datetime.timedelta(seconds=300)


def join(device: str) -> None:
    """Join the process group of all ranks; nothing where there is one.

    Each rank takes a GPU of its own and NCCL where there are enough; ranks that share a GPU, which NCCL refuses, and
    ranks on the CPU take gloo. This touches CUDA: what is to be forked without it must be forked before.
    """
    if ranks.world() == 1:
        return
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    if gpus:
        torch.cuda.set_device(ranks.rank() % gpus)
    dist.init_process_group(
        transport(gpus),
        init_method=f"file://{os.environ[ranks.MEETING]}",
        rank=ranks.rank(),
        world_size=ranks.world(),
        timeout=PATIENCE,
    )
    if ranks.first():
        print(f"Ranks: {ranks.world()} over {transport(gpus)}", flush=True)


def transport(gpus: int) -> str:
    """``nccl`` where each rank has one of ``gpus`` for itself, else ``gloo``."""
    return "nccl" if gpus >= ranks.world() else "gloo"
