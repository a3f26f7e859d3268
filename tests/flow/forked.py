"""A scheduler that runs the bench loop in processes forked from one that has torch loaded already.

What runs is the bench loop's own program, in a process of its own for each attempt; only the seconds that each
would spend on its imports are spent once.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess

from proveout.domain.evidence import End, ExitRecord
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Resources
from proveout.launch import Start

PRELOAD = [
    "proveout_bench.cli",
    "proveout_bench.algorithms.grpo.loop",
    "proveout_bench.backends.hf",
    "proveout_bench.generation.inprocess",
    "torch.utils.tensorboard",
    "transformers.models.qwen2.modeling_qwen2",
    "peft",
]


class ForkedJob:
    """One bench process."""

    def __init__(self, process: BaseProcess) -> None:
        self._process, self._started = process, time.time()

    def poll(self) -> ExitRecord | None:
        return None if self._process.exitcode is None else self._record(End.EXITED)

    def cancel(self) -> ExitRecord:
        self._process.terminate()
        self._process.join()
        return self._record(End.INTERRUPTED)

    def _record(self, end: End) -> ExitRecord:
        code = self._process.exitcode
        return ExitRecord(end=end, code=code, started=self._started, finished=time.time(), launcher="forked")


class ForkedScheduler:
    """Counts what it starts, in ``commands``."""

    name = "forked"

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOAD)
        self.commands: list[Command] = []

    def submit(self, command: Command, files: AttemptLayout, resources: Resources) -> ForkedJob:
        self.commands.append(command)
        process = self._context.Process(target=_bench, args=(command.argv[3:], command.cwd, str(files.log)))
        process.start()
        return ForkedJob(process)

    def submit_many(self, starts: Sequence[Start]) -> list[ForkedJob]:
        return [self.submit(start.command, start.files, start.resources) for start in starts]

    def cancel(self, jobs: Sequence[ForkedJob]) -> list[ExitRecord]:
        return [job.cancel() for job in jobs]

    @property
    def scheduler(self) -> ForkedScheduler:
        return self

    def reattach(self, files: AttemptLayout) -> ExitRecord:
        return ExitRecord(end=End.LOST)


def _bench(words: tuple[str, ...], folder: str, log: str) -> None:
    console = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(console, 1)
    os.dup2(console, 2)
    os.chdir(folder)
    from proveout_bench import cli

    sys.argv = ["proveout_bench", *words]
    cli.main()
