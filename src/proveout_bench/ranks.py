"""The processes of one run: rank 0 alone samples, writes and prints; all of them compute.

Every rank runs the same loop from the same seed. Without a launcher there is one rank, and nothing here costs
anything.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from proveout_bench.errors import EnvironmentFaultError

RANK, WORLD, MEETING = "PROVEOUT_BENCH_RANK", "PROVEOUT_BENCH_WORLD", "PROVEOUT_BENCH_MEETING"


def rank() -> int:
    """The number of this process, from 0."""
    return int(os.environ.get(RANK, "0"))


def world() -> int:
    """How many processes there are."""
    return int(os.environ.get(WORLD, "1"))


def first() -> bool:
    """Whether this process writes and prints."""
    return rank() == 0


def barrier() -> None:
    """Wait until all processes are here."""
    if world() > 1:
        import torch.distributed as dist

        dist.barrier()


def shared(value: Any) -> Any:
    """Rank 0's ``value`` on every rank; others may give None."""
    if world() == 1:
        return value
    import torch.distributed as dist

    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def gathered(value: Any) -> list[Any]:
    """The ``value`` of every rank, in order."""
    if world() == 1:
        return [value]
    import torch.distributed as dist

    found: list[Any] = [None] * world()
    dist.all_gather_object(found, value)
    return found


def exhaust(items: Iterable[Any]) -> None:
    """Go through ``items`` for what doing so means to other ranks."""
    for _ in items:
        pass


def leave(status: int) -> NoReturn:
    """End this fork with ``status``, and what libraries started beside it.

    A fork ends without Python's own last steps, which belong to the process it was made from. Megatron's checkpoints
    keep a manager process, which nothing else would ever end (``strategies/filesystem_async.py``).
    """
    for helper in multiprocessing.active_children():
        helper.terminate()
        helper.join()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def too_few_gpus(gpus: int) -> EnvironmentFaultError:
    """What to raise where a layout needs a GPU for each rank and the machine shows ``gpus``."""
    return EnvironmentFaultError(
        f"runtime.device=cuda: the layout has {world()} processes, each with a GPU of its own, and GPUs here: {gpus}"
    )
