"""Compression of payloads by name."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from proveout_bench.errors import EnvironmentFaultError


def compressor(name: str) -> Callable[[bytes], bytes] | None:
    """``zlib`` (level 1), ``zstd`` (level 1, where the package zstandard is there), or None for ``none``."""
    if name == "none":
        return None
    if name == "zlib":
        return lambda data: zlib.compress(data, 1)
    return lambda data: bytes(_zstandard().ZstdCompressor(level=1).compress(data))


def decompress(name: str, data: bytes | bytearray) -> bytearray:
    """The bytes that were compressed as ``name``."""
    if name == "zlib":
        return bytearray(zlib.decompress(data))
    return bytearray(_zstandard().ZstdDecompressor().decompress(bytes(data)))


def _zstandard():  # type: ignore[no-untyped-def]
    try:
        import zstandard
    except ModuleNotFoundError:
        raise EnvironmentFaultError(
            "refit.compress=zstd needs the package zstandard; install it, or use refit.compress=zlib"
        ) from None
    return zstandard
