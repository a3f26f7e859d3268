"""Tensors that may be sharded over ranks."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, gathered from all ranks where it is sharded: every rank must ask then."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()


def sharded(tensor: Tensor) -> bool:
    """Whether it is spread over ranks."""
    return hasattr(tensor, "full_tensor")


def norm(tensors: Iterable[Tensor]) -> Tensor:
    """L2 norm over all of them together, a scalar tensor; 0 for none."""
    parts = [whole(one.norm()) for one in tensors]
    return torch.stack(parts).norm() if parts else torch.zeros(())
