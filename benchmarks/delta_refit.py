"""A refit of 100 M parameters of which 1 % changed: dense against sparse delta, on a local socket and at 1 Gb/s.

python benchmarks/delta_refit.py [--parameters 100000000] [--changed 0.01] [--repeat 3]

Sender and receiver are two processes, as in the bench loop. The slow link is a socket whose sender waits in user space
until each piece could have left at the given rate; the local socket is not limited. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import time
from collections.abc import Iterator

import torch

from proveout_bench.config.schema import Refit
from proveout_bench.faults.refit import ReceiverHooks, SenderHooks
from proveout_bench.refit.bits import DTYPES
from proveout_bench.refit.receiver import Receiver
from proveout_bench.refit.sender import Sender
from proveout_bench.refit.wire import Link, PeerGoneError

TENSOR = 4_000_000
GIGABIT = 125_000_000.0
PIECE = 1 << 18


class Paced:
    """A socket end that sends no faster than ``rate`` bytes a second."""

    def __init__(self, end: socket.socket, rate: float) -> None:
        self._end, self._rate, self._free = end, rate, 0.0

    def sendall(self, data: bytes | memoryview) -> None:
        """Send piece by piece, each when the link would be free again."""
        view = memoryview(data)
        for place in range(0, len(view), PIECE):
            piece = view[place : place + PIECE]
            now = time.perf_counter()
            self._free = max(self._free, now) + len(piece) / self._rate
            self._end.sendall(piece)
            if (wait := self._free - time.perf_counter()) > 0:
                time.sleep(wait)

    def __getattr__(self, name: str) -> object:
        return getattr(self._end, name)


def weights(count: int) -> dict[str, torch.Tensor]:
    """``count`` float32 elements in tensors of ``TENSOR``."""
    draw = torch.Generator().manual_seed(0)
    sizes = [TENSOR] * (count // TENSOR) + ([count % TENSOR] if count % TENSOR else [])
    return {f"w{n}": torch.randn(size, generator=draw) * 0.02 for n, size in enumerate(sizes)}


def change(held: dict[str, torch.Tensor], share: float, seed: int) -> None:
    """Move ``share`` of the elements."""
    draw = torch.Generator().manual_seed(seed)
    for weight in held.values():
        places = torch.randperm(len(weight), generator=draw)[: int(share * len(weight))]
        weight[places] += 0.001


def measure(config: Refit, rate: float | None, count: int, share: float, repeat: int) -> dict[str, float]:
    """Medians over ``repeat`` refits after a first full one: bytes and seconds by part."""
    ours, theirs = socket.socketpair()
    held = weights(count)
    child = os.fork()
    if not child:
        ours.close()
        _receive(Link(theirs), held, config)
    theirs.close()
    sender = Sender(config, Link(Paced(ours, rate) if rate else ours), SenderHooks())  # type: ignore[arg-type]
    sender.refit(held.items())
    rows = []
    for number in range(repeat):
        change(held, share, number)
        start = time.perf_counter()
        report = sender.refit(held.items())
        whole = time.perf_counter() - start
        rows.append({"bytes": report.metrics["bytes"], "total": whole, **report.seconds})
    ours.close()
    os.waitpid(child, 0)
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def _receive(link: Link, held: dict[str, torch.Tensor], config: Refit) -> None:
    receiver = Receiver(held, DTYPES[config.dtype], ReceiverHooks(), counts=False)
    try:
        while True:
            head, _, _ = link.receive()
            receiver.refit(link, head)
    except PeerGoneError:
        os._exit(0)


def rows(asked: argparse.Namespace) -> Iterator[str]:
    """The table."""
    kinds = {
        "dense": Refit(transfer="packed", verify_every=asked.verify_every),
        "delta": Refit(transfer="delta", full_every=1000, verify_every=asked.verify_every),
        "delta, zlib": Refit(
            transfer="delta",
            full_every=1000,
            compress="zlib",
            encoding="xor",
            verify_every=asked.verify_every,
        ),
    }
    parts = ("encode", "transfer", "decode", "load")
    yield "| Link | Refit | Bytes | Encode | Transfer | Decode | Load | Total |"
    yield "|---|---|---|---|---|---|---|---|"
    for link, rate in (("local socket", None), ("1 Gb/s", GIGABIT)):
        dense: dict[str, float] = {}
        for name, config in kinds.items():
            found = measure(config, rate, asked.parameters, asked.changed, asked.repeat)
            dense = dense or found
            fewer, faster = dense["bytes"] / found["bytes"], dense["total"] / found["total"]
            ratio = "" if name == "dense" else f" ({faster:.1f}x faster)"
            less = "" if name == "dense" else f" ({fewer:.1f}x fewer)"
            seconds = " | ".join(f"{found[part]:.2f} s" for part in parts)
            size, total = f"{found['bytes'] / 1e6:.1f} MB{less}", f"{found['total']:.2f} s{ratio}"
            yield f"| {link} | {name} | {size} | {seconds} | {total} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=100_000_000)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--verify-every", type=int, default=1)
    torch.set_num_threads(1)
    asked = parser.parse_args()
    print(f"{asked.parameters:,} float32 parameters, {asked.changed:.1%} changed, median of {asked.repeat}")
    for row in rows(asked):
        print(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
