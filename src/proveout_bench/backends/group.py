"""How the ranks of backend ``hf`` find each other."""

from __future__ import annotations

import datetime
import os

from proveout_bench import ranks
from proveout_bench.config.schema import Runtime

PATIENCE = datetime.timedelta(seconds=300)


def join(runtime: Runtime) -> None:
    """Join the process group of all ranks; nothing where there is one.

    Each rank takes a GPU of its own and NCCL where there are enough; ranks that share a GPU, which NCCL refuses, and
    ranks on the CPU take gloo. This touches CUDA: what is to be forked without it must be forked before.

    EnvironmentFaultError where ranks of tensor parallel layers would have to share a GPU.
    """
    if ranks.world() == 1:
        return
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    gpus = torch.cuda.device_count() if runtime.device == "cuda" else 0
    over = transport(gpus, sharded=runtime.tp > 1)
    if gpus:
        torch.cuda.set_device(ranks.rank() % gpus)
    dist.init_process_group(
        over,
        init_method=f"file://{os.environ[ranks.MEETING]}",
        rank=ranks.rank(),
        world_size=ranks.world(),
        timeout=PATIENCE,
    )
    if ranks.first():
        print(f"Ranks: {ranks.world()} over {over}", flush=True)


def transport(gpus: int, *, sharded: bool) -> str:
    """``nccl`` where each rank has one of ``gpus`` for itself, else ``gloo``.

    Sharded layers keep their tensors on the GPU while ranks exchange them, and gloo crashes on such ones (seen with
    torch 2.11): EnvironmentFaultError where they have a GPU, but not one for each rank.
    """
    if gpus >= ranks.world():
        return "nccl"
    if gpus and sharded:
        raise ranks.too_few_gpus(gpus)
    return "gloo"
