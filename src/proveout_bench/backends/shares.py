"""Which rows of a minibatch a rank computes, and what makes the update one of all ranks."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from proveout_bench import ranks
from proveout_bench.backends.whole import sharded
from proveout_bench.refit.bits import bits_of, checksum


class Share(Protocol):
    """What one rank does of an update."""

    def rows(self, count: int) -> Tensor:
        """Its rows of ``count``, int64 [n]."""
        ...

    def join(self, values: Tensor) -> None:
        """Fill ``values`` float32 [count, T], which hold its rows and 0 elsewhere, with those of the others."""
        ...

    def reduce(self, weights: list[torch.nn.Parameter]) -> None:
        """Make the gradients those of the whole minibatch."""
        ...


class AllRows:
    """Every rank computes all rows: of weights that are whole, or tensor parallel."""

    def rows(self, count: int) -> Tensor:
        """All."""
        return torch.arange(count)

    def join(self, values: Tensor) -> None:
        """They are complete."""

    def reduce(self, weights: list[torch.nn.Parameter]) -> None:
        """They are complete."""


class OwnRows:
    """Data parallel: each rank takes its rows, gradients are summed."""

    def rows(self, count: int) -> Tensor:
        """The rank's contiguous part."""
        return torch.arange(count).tensor_split(ranks.world())[ranks.rank()]

    def join(self, values: Tensor) -> None:
        """Sum over ranks."""
        import torch.distributed as dist

        dist.all_reduce(values)

    def reduce(self, weights: list[torch.nn.Parameter]) -> None:
        """Sum over ranks, each of which has the gradients of its own rows."""
        import torch.distributed as dist

        for weight in weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            dist.all_reduce(weight.grad)


def share_of(data_parallel: int) -> Share:
    """For ``data_parallel`` ranks that hold the same weights."""
    return OwnRows() if data_parallel > 1 else AllRows()


def measure(weights: list[torch.nn.Parameter]) -> dict[str, float]:
    """``ranks``, and ``ranks_differing``: how many hold other weights than rank 0, sharded ones left out."""
    if ranks.world() == 1:
        return {}
    same = (bits_of(weight, torch.float32) for weight in weights if not sharded(weight))
    found = ranks.gathered(checksum(same))
    return {"ranks": float(len(found)), "ranks_differing": float(sum(one != found[0] for one in found))}
