"""Starts as many processes as a layout needs: Megatron is imported once, then each rank is a fork of that process."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from proveout_bench import ranks
from proveout_bench.backends.megatron import meeting
from proveout_bench.backends.megatron.limits import world_of
from proveout_bench.config.schema import RunConfig
from proveout_bench.errors import BenchError, EnvironmentFaultError

TAIL = 15


def start(config: RunConfig, run: Callable[[], None]) -> None:
    """Call ``run`` on every rank. What stops the first rank that stops badly is raised, and the others are ended.

    Rank 0 keeps the console; each other rank writes to ``rank_<n>.log`` in the output directory.
    """
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if config.runtime.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    _known(meeting.import_megatron)
    world = world_of(config)
    if world == 1:
        try:
            _known(run)
        finally:
            meeting.part()
        return

    def on_its_device() -> None:
        take_device(config.runtime.device)
        run()

    spread(config, world, on_its_device)


def take_device(device: str) -> None:
    """On a machine with GPUs let this rank see its own alone, before anything touched one.

    So "cuda" means the same GPU to every part of the rank. EnvironmentFaultError where there are too few.
    """
    if device != "cuda":
        return
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(n) for n in range(torch.cuda.device_count())]
    if ranks.world() > len(names):
        raise ranks.too_few_gpus(len(names))
    os.environ["CUDA_VISIBLE_DEVICES"] = names[ranks.rank()]


def spread(config: RunConfig, world: int, run: Callable[[], None]) -> None:
    """Call ``run`` in ``world`` forks of this process, which are its ranks."""
    with tempfile.TemporaryDirectory() as place:
        os.environ[ranks.WORLD] = str(world)
        os.environ[ranks.MEETING] = str(Path(place) / "meeting")
        logs = {rank: Path(config.output_dir).absolute() / f"rank_{rank}.log" for rank in range(1, world)}
        sys.stdout.flush()
        sys.stderr.flush()
        children = {_fork(rank, run, logs.get(rank)): rank for rank in range(world)}
        try:
            _wait(children, logs)
        finally:
            _end(children)


def _known(run: Callable[[], None]) -> None:
    """Call ``run``. A Megatron that a repair does not know stops it as a fault of the environment."""
    from proveout_cpu import UnknownVersionError

    try:
        run()
    except UnknownVersionError as error:
        raise EnvironmentFaultError(str(error)) from error


def _fork(rank: int, run: Callable[[], None], log: Path | None) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.environ[ranks.RANK] = str(rank)
        if log is not None:
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
        _known(run)
        meeting.part()
        status = 0
    except BenchError as error:
        print(f"Error: {error}", file=sys.stderr)
        status = error.exit_status
    except BaseException:
        traceback.print_exc()
    finally:
        ranks.leave(status)


def _wait(children: dict[int, int], logs: dict[int, Path]) -> None:
    """Until all ended well, or one did not."""
    while children:
        child, state = os.wait()
        rank = children.pop(child, None)
        if rank is None or state == 0:
            continue
        code = os.waitstatus_to_exitcode(state)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        for line in _tail(logs.get(rank)):
            print(f"[rank {rank}] {line}", file=sys.stderr)
        raise RankError(f"rank {rank} {how}; the other ranks were stopped", code if code > 0 else 1)


def _end(children: dict[int, int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)


def _tail(log: Path | None) -> list[str]:
    if log is None or not log.is_file():
        return []
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]


class RankError(BenchError):
    """A rank that stopped, with its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_status = status
