"""What a weight transfer to the generation side really brought: written down for every transfer, as evidence.

One JSON object a line in ``refit.jsonl`` of the directory that PROVEOUT_EVIDENCE names, and on the console after
``[refit]``. ``from_original`` compares with the Hugging Face checkpoint that the run started from: at the first
transfer, before any step, an import and export that is right gives 0. ``change`` is against the transfer before:
where nothing moved, agreement of policy and generation shows nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

FILE = "refit.jsonl"
VARIABLE = "PROVEOUT_EVIDENCE"


class RefitError(RuntimeError):
    """A transfer that leaves the generation model other than the policy: names that it does not know, or lacks."""


def as_in_checkpoint(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of a transformers model under the names that its checkpoint has, sharing their memory.

    transformers (5 and later) holds the experts of a layer in two tensors, ``experts.gate_up_proj`` [experts,
    2 * intermediate, hidden] and ``experts.down_proj`` [experts, hidden, intermediate]; a checkpoint holds each
    expert's matrices by themselves.
    """
    found: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        place, _, kind = name.rpartition(".")
        if not place.endswith(".experts") or tensor.dim() != 3:
            found[name] = tensor
        elif kind == "gate_up_proj":
            half = tensor.shape[1] // 2
            for number, expert in enumerate(tensor):
                found[f"{place}.{number}.gate_proj.weight"] = expert[:half]
                found[f"{place}.{number}.up_proj.weight"] = expert[half:]
        else:
            for number, expert in enumerate(tensor):
                found[f"{place}.{number}.{kind}.weight"] = expert
    return found


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
            largest = _larger(largest, float(moved.max()))
            largest_original = _larger(largest_original, float(away.max()))
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


def _larger(one: float, other: float) -> float:
    """The larger of two, NaN where either is."""
    return other if math.isnan(other) or other > one else one


def write(proof: dict[str, Any]) -> None:
    """Append one proof to the evidence, and print it."""
    line = json.dumps(proof, allow_nan=True)
    print(f"[refit] {line}", flush=True)
    if place := os.environ.get(VARIABLE):
        with Path(place, FILE).open("a") as file:
            file.write(line + "\n")
