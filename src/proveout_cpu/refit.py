"""What a weight transfer to the generation side really brought: written down for every transfer, as evidence.

One JSON object a line in ``refit.jsonl`` of the directory that PROVEOUT_EVIDENCE names, and on the console after
``[refit]``. ``from_original`` compares with the Hugging Face checkpoint that the run started from: at the first
transfer, before any step, an import and export that is right gives 0. ``change`` is against the transfer before:
where nothing moved, agreement of policy and generation shows nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

FILE = "refit.jsonl"
VARIABLE = "PROVEOUT_EVIDENCE"


class RefitError(RuntimeError):
    """A transfer that leaves the generation model other than the policy: names that it does not know, or lacks."""


class RefitLog:
    """Keeps the original weights of a generation model, and proves each transfer into it.

    ``tied`` are names of the model's own that share memory with another one, and that no transfer needs to bring.
    """

    def __init__(self, weights: Mapping[str, torch.Tensor], tied: Iterable[str], worker: str) -> None:
        self._weights = weights
        self._original = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self._tied, self._worker, self._count = frozenset(tied), worker, 0

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def take(self, received: Mapping[str, torch.Tensor], version: Any) -> dict[str, Any]:
        """Copy ``received`` into the weights and write the proof. Raises RefitError, after writing, for names that
        are missing or unknown, and for shapes that differ."""
        missing = sorted(set(self._weights) - set(received) - self._tied)
        extra = sorted(set(received) - set(self._weights))
        wrong = sorted(
            n for n in set(received) & set(self._weights) if received[n].shape != self._weights[n].shape
        )
        change = original = 0.0
        largest = largest_original = 0.0
        digest = hashlib.sha256()
        for name in sorted(set(received) & set(self._weights) - set(wrong)):
            new, own, first = received[name], self._weights[name], self._original[name]
            digest.update(name.encode() + new.contiguous().view(torch.uint8).numpy().tobytes())
            moved = (new.float() - own.float()).abs()
            away = (new.float() - first.to(new.dtype).float()).abs()
            change += float(moved.square().sum())
            original += float(away.square().sum())
            largest, largest_original = (
                max(largest, float(moved.max())),
                max(largest_original, float(away.max())),
            )
            own.copy_(new.to(own.dtype))
        self._count += 1
        proof = {
            "worker": self._worker,
            "transfer": self._count,
            "version": version,
            "received": len(received),
            "missing": missing,
            "extra": extra,
            "wrong_shape": wrong,
            "checksum": digest.hexdigest()[:16],
            "change": change**0.5,
            "largest_change": largest,
            "from_original": original**0.5,
            "largest_from_original": largest_original,
        }
        write(proof)
        if missing or extra or wrong:
            raise RefitError(
                f"transfer {self._count}: missing {missing[:3]}, unknown {extra[:3]}, wrong shape {wrong[:3]}"
            )
        return proof


def write(proof: dict[str, Any]) -> None:
    """Append one proof to the evidence, and print it."""
    line = json.dumps(proof, allow_nan=True)
    print(f"[refit] {line}", flush=True)
    if place := os.environ.get(VARIABLE):
        with Path(place, FILE).open("a") as file:
            file.write(line + "\n")
