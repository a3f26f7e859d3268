"""The policy's side of a refit: what changed since the last one, as messages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proveout_bench.config.schema import Refit
from proveout_bench.errors import BenchError
from proveout_bench.faults.refit import SenderHooks
from proveout_bench.refit.bits import DTYPES, bits_of, checksum
from proveout_bench.refit.compress import compressor
from proveout_bench.refit.report import RefitReport, measures
from proveout_bench.refit.wire import Link, PeerGoneError


class RefitError(BenchError):
    """Generation does not hold the policy's weights."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Updating weights for the generation policy failed during refit: {what}")


@dataclass(frozen=True)
class Piece:
    """One tensor on its way: its name and shape, and its integers, or the places and integers that changed."""

    name: str
    shape: tuple[int, ...]
    values: Tensor
    places: Tensor | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.values.nbytes + (self.places.nbytes if self.places is not None else 0)

    def row(self) -> dict[str, Any]:
        """What the receiver must know besides the integers."""
        return {"name": self.name, "shape": list(self.shape), "sparse": self.places is not None}

    def tensors(self) -> list[Tensor]:
        """What is sent."""
        return [self.values] if self.places is None else [self.places, self.values]


class Sender:
    """Sends weights over ``link``, remembers what the receiver should hold, and checks that it does."""

    def __init__(self, config: Refit, link: Link, hooks: SenderHooks) -> None:
        self._config, self._link, self._hooks = config, link, hooks
        self._dtype, self._compress = DTYPES[config.dtype], compressor(config.compress)
        self._held: dict[str, Tensor] = {}
        self._seconds: dict[str, float] = {}
        self.version = self._since_full = self._sent = 0

    def refit(self, weights: Iterable[tuple[str, Tensor]]) -> RefitReport:
        """Send all of ``weights`` or what changed; RefitError where the receiver's answer does not match."""
        start, before = time.perf_counter(), self._link.sent
        full = self._full()
        self._seconds, self._sent = {"encode": 0.0}, 0
        base, self.version = self.version, self.version + 1
        head = {
            "op": "refit",
            "version": self.version,
            "base": base,
            "full": full,
            "encoding": self._config.encoding,
        }
        try:
            self._link.send(head)
            for bucket in self._buckets(self._pieces(weights, full)):
                self._send(bucket)
            elements = sum(held.numel() for held in self._held.values())
            verify = self.version % self._config.verify_every == 0
            self._link.send({"op": "commit", "verify": verify})
            expected = (
                self._timed(lambda: checksum(self._held[name] for name in sorted(self._held)))
                if verify
                else 0
            )
            answer, _, _ = self._link.receive()
        except PeerGoneError as error:
            raise RefitError(f"version {self.version}: {error}") from error
        self._check(answer, expected if verify else None)
        seconds = self._seconds | {"decode": answer["decode_s"], "load": answer["load_s"]}
        whole = time.perf_counter() - start
        seconds["transfer"] = max(0.0, whole - sum(seconds.values()))
        metrics = measures(
            version=answer["version"],
            expected=self.version,
            changed=answer["changed"],
            elements=elements,
            largest=answer["largest"],
            missing=len(answer["missing"]),
            extra=len(answer["extra"]),
            sent=self._link.sent - before,
        )
        for word in ("missing", "extra"):
            if answer[word]:
                print(
                    f"Refit: {len(answer[word])} names {word} at generation, such as {answer[word][0]}",
                    flush=True,
                )
        return RefitReport(metrics | {"full_sync": float(full), "checksum_ok": float(verify)}, seconds)

    def _full(self) -> bool:
        sparse = (
            self._config.transfer == "delta" and self._held and self._since_full + 1 < self._config.full_every
        )
        full = self._hooks.full_sync(not sparse, self.version + 1)
        self._since_full = 0 if full else self._since_full + 1
        return bool(full)

    def _pieces(self, weights: Iterable[tuple[str, Tensor]], full: bool) -> Iterator[Piece]:
        start = time.perf_counter()
        for name, weight in self._hooks.sent(weights, self.version):
            new, old = bits_of(weight, self._dtype), self._held.get(name)
            if full or old is None:
                piece = Piece(name, tuple(weight.shape), new)
            else:
                places = (new != old).nonzero().squeeze(1).to(torch.int32)
                if places.nbytes + places.numel() * new.itemsize >= new.nbytes:
                    piece = Piece(name, tuple(weight.shape), new)
                else:
                    where = places.long()
                    values = new[where] ^ old[where] if self._config.encoding == "xor" else new[where]
                    piece = Piece(name, tuple(weight.shape), values, places)
            if old is None:
                self._held[name] = new.clone()
            else:
                old.copy_(new)
            self._seconds["encode"] += time.perf_counter() - start
            yield piece
            start = time.perf_counter()
        self._seconds["encode"] += time.perf_counter() - start

    def _buckets(self, pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
        """One tensor a message for ``dense``; else as many as fit in ``bucket_bytes``."""
        most = 0 if self._config.transfer == "dense" else self._config.bucket_bytes
        bucket: list[Piece] = []
        for piece in pieces:
            if bucket and sum(one.size for one in bucket) + piece.size > most:
                yield bucket
                bucket = []
            bucket.append(piece)
        if bucket:
            yield bucket

    def _send(self, bucket: list[Piece]) -> None:
        start = time.perf_counter()
        tensors = [tensor for piece in bucket for tensor in piece.tensors()]
        head: dict[str, Any] = {"op": "bucket", "pieces": [piece.row() for piece in bucket]}
        head["checksum"] = checksum(tensors)
        head["tensors"] = [[str(one.dtype).removeprefix("torch."), list(one.shape)] for one in tensors]
        blob = b""
        if self._compress is not None:
            blob = self._compress(
                b"".join(memoryview(one.view(torch.uint8).numpy()) for one in tensors if one.numel())
            )
            head = head | {"packed": self._config.compress}
            head["shapes"] = head.pop("tensors")
        self._seconds["encode"] += time.perf_counter() - start
        number, self._sent = self._sent, self._sent + 1
        if not self._hooks.loses(self.version, number):
            self._link.send(head, () if blob else self._hooks.wire(tensors, self.version), blob)

    def _timed(self, work: Any) -> int:
        start = time.perf_counter()
        found = int(work())
        self._seconds["encode"] += time.perf_counter() - start
        return found

    def _check(self, answer: dict[str, Any], expected: int | None) -> None:
        if answer.get("error"):
            raise RefitError(answer["error"])
        if answer["version"] != self.version:
            raise RefitError(
                f"version {self.version} was sent, and generation holds version {answer['version']}; "
                "its samples would be those of other weights"
            )
        if expected is not None and answer["checksum"] not in (expected, None):
            raise RefitError(
                f"version {self.version}: checksum {answer['checksum']:08x} of generation's weights, "
                f"{expected:08x} of the policy's; they are not the same weights"
            )
