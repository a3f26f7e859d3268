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
from proveout_bench.errors import EnvironmentFaultError

REMEDY = (
    "make bridge, or: proveout stack install bridge-cpu (no pip extra can say it); where the interpreter is your own, "
    "install the package there"
)
PATIENCE = datetime.timedelta(seconds=300)


def meet(device: str) -> None:
    """Join the process group of all ranks (gloo, or NCCL on GPUs); once a process."""
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    if device == "cuda":
        os.environ["LOCAL_RANK"] = str(ranks.rank() % torch.cuda.device_count())
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    else:
        os.environ["LOCAL_RANK"] = str(ranks.rank())
    place = os.environ.get(ranks.MEETING) or str(Path(tempfile.mkdtemp()) / "meeting")
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"file://{place}",
        rank=ranks.rank(),
        world_size=ranks.world(),
        timeout=PATIENCE,
    )


def report_imports() -> None:
    """Rank 0 prints from which files the ranks imported Megatron, and what was repaired without GPU or packages."""
    import proveout_cpu
    from proveout_cpu.megatron import transformer_engine_is_there
    from proveout_cpu.torch_cuda import cuda_is_there

    where = "cuda" if cuda_is_there() else "cpu"
    files = {name: str(sys.modules[name].__file__) for name in ("megatron.core", "megatron.bridge")}
    everywhere = ranks.gathered(files)
    if ranks.first():
        for module, file in dict.fromkeys(item for found in everywhere for item in found.items()):
            print(f"[import] worker {module} {file}", flush=True)
        for repair in proveout_cpu.applied():
            print(f"Platform {where}: {repair}", flush=True)
        if not transformer_engine_is_there():
            print("Megatron layers: local, as Transformer Engine is not installed", flush=True)


def part() -> None:
    """Leave the process group, if this process is in one."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def import_megatron() -> None:
    """Import Megatron, after the repairs for what this machine lacks; what it says of fusions is kept off the console.

    EnvironmentFaultError where a package of it is missing.
    """
    import proveout_cpu.megatron

    proveout_cpu.megatron.apply(state_space=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    try:
        import megatron.bridge  # noqa: F401
    except ModuleNotFoundError as error:
        raise EnvironmentFaultError(
            f"package {error.name!r} is missing, and backend megatron needs it; remedy: {REMEDY}"
        ) from error
