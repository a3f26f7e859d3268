"""A bench server that has imported everything: runs start from it in a second, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from proveout import loops
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import StepResult
from proveout.domain.loop import LoopContext
from proveout.domain.step import Command, LevelRequest, Step
from proveout.flow.policy import Policy
from proveout.launch.files import environment
from proveout.loops.bench.table import HF, NAME
from proveout.store.runs import Run

VARIABLE = "PROVEOUT_BENCH_WARM"
READY = "Warm server ready"
GONE = 75
BACKEND = "backend="
WORTH_IT = 2
POLL_SECONDS = 0.02


def refuse_gone(results: Iterable[StepResult]) -> None:
    """Raises BlockedError where an attempt lost its server: nothing that it left says anything."""
    for result in results:
        for attempt in result.attempts:
            if attempt.exit.code == GONE:
                raise BlockedError("the bench server that runs start from is gone", where=result.id)


def warmed(step: Step, variable: dict[str, str]) -> Step:
    """The step, started from the server that ``variable`` names."""
    command = msgspec.structs.replace(step.command, env=step.command.env | variable)
    return msgspec.structs.replace(step, command=command)


def bench_context(backend: str, python: str | None) -> LoopContext:
    """Runs of the bench loop with ``backend`` on ``python``; None leaves the interpreter to the backend."""
    named = {} if python is None else {"python": python}
    return LoopContext(python=python or sys.executable, options={"backend": backend, **named})


@contextmanager
def warm_server(context: LoopContext) -> Iterator[dict[str, str]]:
    """The environment variable that makes bench commands of this context start from a server that lives as long as
    the block. Raises BlockedError where it does not start.
    """
    request = LevelRequest(loop=NAME, level=0, requested=True, reason="warm start")
    command = loops.get(NAME).steps(request, context)[0].command
    with _server(command) as (path, server, errors):
        line = server.stdout.readline() if server.stdout else ""
        if READY not in line:
            said = errors.read_text(encoding="utf-8", errors="replace").strip()
            raise BlockedError(f"the bench loop does not start: {said[-300:] or line}", where=command.argv[0])
        yield {VARIABLE: path}


@contextmanager
def warm_runs(runs: Sequence[Run], policy: Policy) -> Iterator[None]:
    """Let the bench steps that are left in ``runs`` start from one server, where several of them could.

    It imports while the first of them is being started; a step that it does not suit, or any where it failed, starts
    by itself, as every step does whose command is repeated by hand.
    """
    command = _shared(runs) if _plain(policy) and VARIABLE not in os.environ else None
    if command is None:
        yield
        return
    with _server(command) as (path, _, _):
        os.environ[VARIABLE] = path
        try:
            yield
        finally:
            os.environ.pop(VARIABLE, None)


def _plain(policy: Policy) -> bool:
    return (policy.launch.scheduler.name, policy.launch.launcher.name) == ("local", "process")


def _shared(runs: Sequence[Run]) -> Command | None:
    """The command of a bench step whose interpreter, backend and environment most steps have; None where sharing
    them saves nothing."""
    found: dict[tuple[str, ...], list[Command]] = {}
    for run in runs:
        judged = run.results()
        for step in run.plan.steps:
            if step.coverage.loop == NAME and not step.skip_reason and step.id not in judged:
                command = step.command
                key = (command.argv[0], _backend(command), *map(str, sorted(command.env.items())))
                found.setdefault(key, []).append(command)
    most = max(found.values(), key=len, default=[])
    return most[0] if len(most) >= WORTH_IT else None


def _backend(command: Command) -> str:
    named = [word.removeprefix(BACKEND) for word in command.argv if word.startswith(BACKEND)]
    return named[-1] if named else HF


@contextmanager
def _server(command: Command) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    with tempfile.TemporaryDirectory(prefix="proveout-warm-") as folder:
        path, errors, empty = Path(folder) / "socket", Path(folder) / "stderr", Path(folder) / "empty"
        empty.mkdir()
        with errors.open("w", encoding="utf-8") as file:
            server = subprocess.Popen(
                [command.argv[0], "-m", "proveout_bench.warm", str(path), _backend(command)],
                cwd=empty,
                env=environment(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        try:
            while not path.exists() and server.poll() is None:
                time.sleep(POLL_SECONDS)
            yield str(path), server, errors
        finally:
            server.terminate()
            server.wait()
