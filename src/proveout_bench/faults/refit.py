"""Faults of the weight transfer to a separate generation process: hooks of both ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from proveout_bench.errors import BenchError


class SenderHooks:
    """A sound sender."""

    def full_sync(self, full: bool, version: int) -> bool:
        """Whether refit ``version`` sends everything."""
        return full

    def sent(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterable[tuple[str, Tensor]]:
        """The weights as they are handed to the encoder."""
        return weights

    def loses(self, version: int, bucket: int) -> bool:
        """Whether bucket number ``bucket`` (from 0) is lost on the way."""
        return False

    def wire(self, tensors: list[Tensor], version: int) -> list[Tensor]:
        """The payload after its checksum was taken."""
        return tensors


class ReceiverHooks:
    """A sound receiver."""

    def started(self, weights: dict[str, Tensor]) -> None:
        """The weights that generation begins with."""

    def drops(self, version: int) -> bool:
        """Whether the payload of ``version`` is thrown away."""
        return False

    def times(self, version: int) -> int:
        """How often a bucket is applied."""
        return 1

    def version(self, new: int, old: int) -> int:
        """The version that the receiver says it holds."""
        return new

    def trusts(self) -> bool:
        """Whether the receiver echoes the expected checksum without looking."""
        return False


class BucketLost(SenderHooks):
    """The second bucket of a refit does not arrive."""

    def __init__(self, at: int) -> None:
        self._at = at

    def loses(self, version: int, bucket: int) -> bool:
        """That one."""
        return version == self._at and bucket == 1


class NameLeftOut(SenderHooks):
    """The last norm is never sent."""

    def sent(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterator[tuple[str, Tensor]]:
        """All the others."""
        return ((name, weight) for name, weight in weights if name != "model.norm.weight")


class Rounded(SenderHooks):
    """Weights pass through bfloat16 although float32 was asked for."""

    def sent(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterator[tuple[str, Tensor]]:
        """Rounded."""
        return ((name, weight.to(torch.bfloat16).float()) for name, weight in weights)


class NeverFull(SenderHooks):
    """Only what changed is sent, although generation never got a full set."""

    def full_sync(self, full: bool, version: int) -> bool:
        """Never."""
        return False

    def sent(self, weights: Iterable[tuple[str, Tensor]], version: int) -> Iterator[tuple[str, Tensor]]:
        """Of the first refit nothing is thought to have changed."""
        return iter(()) if version == 1 else iter(weights)


class BitFlipped(SenderHooks):
    """One element changes on the way."""

    def __init__(self, at: int) -> None:
        self._at = at

    def wire(self, tensors: list[Tensor], version: int) -> list[Tensor]:
        """The first integer of the last tensor has its highest exponent bit turned."""
        if version != self._at or not tensors[-1].numel():
            return tensors
        spoiled = tensors[-1].clone()
        spoiled[0] ^= 1 << 29
        return [*tensors[:-1], spoiled]


class StaleAndSilent(ReceiverHooks):
    """From a refit on nothing is applied, and everything is confirmed."""

    def __init__(self, at: int) -> None:
        self._at = at

    def drops(self, version: int) -> bool:
        """From ``at`` on."""
        return version >= self._at

    def trusts(self) -> bool:
        """It says what the sender wants to hear."""
        return True


class OldVersion(ReceiverHooks):
    """From a refit on the payload is thrown away, and the version tells it."""

    def __init__(self, at: int) -> None:
        self._at = at

    def drops(self, version: int) -> bool:
        """From ``at`` on."""
        return version >= self._at

    def version(self, new: int, old: int) -> int:
        """The old one."""
        return old if new >= self._at else new


class LostWeights(ReceiverHooks):
    """Generation begins with other weights than the policy, as after a restart."""

    def started(self, weights: dict[str, Tensor]) -> None:
        """All a little larger."""
        for weight in weights.values():
            weight.mul_(1.01)


class AppliedTwice(ReceiverHooks):
    """A delta is applied again, as after a retry."""

    def __init__(self, at: int) -> None:
        self._at = at

    def times(self, version: int) -> int:
        """Twice at ``at``."""
        return 2 if version == self._at else 1


def kill(pid: int) -> None:
    """Kill the generation process."""
    import os
    import signal

    os.kill(pid, signal.SIGKILL)


def stop(pid: int) -> None:
    """Stop the generation process without ending it."""
    import os
    import signal

    os.kill(pid, signal.SIGSTOP)


class UnknownFaultError(BenchError):
    """A fault name that no injector has. Exit status 2."""

    exit_status = 2
