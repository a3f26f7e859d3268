"""Generation's side of a refit: applies what comes, and says what it then holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from proveout_bench.faults.refit import ReceiverHooks
from proveout_bench.refit.bits import bits_of, checksum, weight_of
from proveout_bench.refit.compress import decompress
from proveout_bench.refit.wire import Link, tensors_of


class Receiver:
    """Holds ``weights`` by name, updates them in place; bits are those of the wire's dtype."""

    def __init__(self, weights: dict[str, Tensor], dtype: torch.dtype, hooks: ReceiverHooks) -> None:
        self._weights, self._dtype, self._hooks = weights, dtype, hooks
        hooks.started(weights)
        self._bits = {name: bits_of(weight, dtype) for name, weight in weights.items()}
        self.version = 0

    def refit(self, link: Link, head: dict[str, Any]) -> None:
        """Take all buckets up to the commit, and answer."""
        problem, seen, extra = "", set[str](), set[str]()
        self._decode = self._load = self._largest = 0.0
        self._changed = 0
        if not head["full"] and head["base"] != self.version:
            problem = (
                f"a delta from version {head['base']} to {head['version']} came to weights of version {self.version}; "
                "a full sync is needed first"
            )
        while True:
            message, tensors, payload = link.receive()
            if message["op"] == "commit":
                break
            tensors = self._unpack(message, tensors, payload)
            if checksum(tensors) != message["checksum"]:
                problem = problem or f"version {head['version']}: a bucket's checksum is wrong"
            if not problem and not self._hooks.drops(head["version"]):
                for _ in range(self._hooks.times(head["version"])):
                    self._apply(message["pieces"], tensors, head["encoding"], seen, extra)
        if not problem:
            self.version = self._hooks.version(head["version"], self.version)
        missing = sorted(self._weights.keys() - seen) if head["full"] else []
        found = 0
        if message["verify"]:
            start = time.perf_counter()
            found = checksum(self._now(name) for name in sorted(seen | (self._weights.keys() - set(missing))))
            self._decode += time.perf_counter() - start
        link.send(
            {
                "version": self.version,
                "error": problem,
                "checksum": None if self._hooks.trusts() else found,
                "missing": missing,
                "extra": sorted(extra),
                "changed": self._changed,
                "largest": self._largest,
                "decode_s": self._decode,
                "load_s": self._load,
            }
        )

    def _unpack(self, message: dict[str, Any], tensors: list[Tensor], payload: bytearray) -> list[Tensor]:
        if "packed" not in message:
            return tensors
        start = time.perf_counter()
        plain = decompress(message["packed"], payload)
        self._decode += time.perf_counter() - start
        return list(tensors_of(message["shapes"], plain))

    def _now(self, name: str) -> Tensor:
        return bits_of(self._weights[name], self._dtype)

    def _apply(
        self,
        pieces: Sequence[dict[str, Any]],
        tensors: list[Tensor],
        encoding: str,
        seen: set[str],
        extra: set[str],
    ) -> None:
        rest = iter(tensors)
        for piece in pieces:
            name = piece["name"]
            places = next(rest) if piece["sparse"] else None
            values = next(rest)
            if name not in self._weights:
                extra.add(name)
                continue
            seen.add(name)
            self._one(name, piece["shape"], values, places, encoding)

    def _one(self, name: str, shape: list[int], values: Tensor, places: Tensor | None, encoding: str) -> None:
        start, old = time.perf_counter(), self._bits[name]
        where = slice(None) if places is None else places.long()
        before = old[where]
        after = values ^ before if places is not None and encoding == "xor" else values
        self._changed += int((after != before).sum())
        if after.numel():
            apart = (after.view(self._dtype).float() - before.view(self._dtype).float()).abs().max()
            self._largest = max(self._largest, float(apart))
        self._decode += time.perf_counter() - start
        start = time.perf_counter()
        old[where] = after
        self._store(name, shape, old)
        self._load += time.perf_counter() - start

    def _store(self, name: str, shape: list[int], bits: Tensor) -> None:
        weight = self._weights[name]
        new = weight_of(bits, self._dtype, shape)
        if new.data_ptr() != weight.data_ptr():
            with torch.no_grad():
                weight.copy_(new)
