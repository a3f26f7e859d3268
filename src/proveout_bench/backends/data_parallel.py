"""Data parallel training of backend ``hf``: each rank takes its rows of a minibatch, gradients are summed.

Every rank runs the whole loop on the same batches, so that the loss is that of one process; with one rank nothing here
does anything.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from proveout_bench import ranks
from proveout_bench.backends.megatron.launch import spread
from proveout_bench.backends.megatron.meeting import meet
from proveout_bench.batch import Batch
from proveout_bench.config.schema import RunConfig
from proveout_bench.forward import response_logprobs
from proveout_bench.refit.bits import bits_of, checksum


def start(config: RunConfig, run: Callable[[], None]) -> None:
    """Call ``run`` on each of ``runtime.ranks`` processes, which are forks of this one."""
    if config.runtime.ranks == 1:
        run()
        return

    def join() -> None:
        meet(config.runtime.device)
        run()

    spread(config, config.runtime.ranks, join)


def logprobs(model: torch.nn.Module, batch: Batch, temperature: float) -> Tensor:
    """Of the whole batch, float32 [B, T]; the gradient flows through this rank's rows alone."""
    if ranks.world() == 1:
        return response_logprobs(model, batch, temperature)
    import torch.distributed as dist

    parts = [
        part.to(batch.input_ids.device)
        for part in torch.arange(len(batch.input_ids)).tensor_split(ranks.world())
    ]
    mine = parts[ranks.rank()]
    own = response_logprobs(model, batch.rows(mine), temperature) if len(mine) else None
    whole = torch.zeros_like(batch.response_mask)
    if own is not None:
        whole[mine] = own.detach()
    dist.all_reduce(whole)
    return whole if own is None else whole.index_copy(0, mine, own)


def reduce(weights: list[torch.nn.Parameter]) -> None:
    """Sum the gradients of all ranks, each of which has those of its own rows."""
    if ranks.world() == 1:
        return
    import torch.distributed as dist

    for weight in weights:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        dist.all_reduce(weight.grad)


def measure(weights: list[torch.nn.Parameter]) -> dict[str, float]:
    """``ranks``, and ``ranks_differing``: how many hold other weights than rank 0."""
    if ranks.world() == 1:
        return {}
    found = ranks.gathered(checksum(bits_of(weight, torch.float32) for weight in weights))
    return {"ranks": float(len(found)), "ranks_differing": float(sum(one != found[0] for one in found))}
