"""Weights as integers: what is compared, sent and summed up is bits, so that equal means equal."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import torch
from torch import Tensor

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
INTEGERS = {torch.float32: torch.int32, torch.bfloat16: torch.int16}


def bits_of(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """``weight`` rounded to ``dtype``, as flat integers on the CPU; shares memory where nothing had to change."""
    return weight.detach().to("cpu", dtype).contiguous().reshape(-1).view(INTEGERS[dtype])


def weight_of(bits: Tensor, dtype: torch.dtype, shape: Iterable[int]) -> Tensor:
    """The weight that ``bits`` are."""
    return bits.view(dtype).reshape(tuple(shape))


def checksum(parts: Iterable[Tensor]) -> int:
    """CRC-32 over flat integer tensors, in order."""
    found = 0
    for part in parts:
        found = zlib.crc32(memoryview(part.contiguous().view(torch.uint8).numpy()), found)
    return found
