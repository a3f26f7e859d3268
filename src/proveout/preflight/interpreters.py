"""The interpreters that will run the loops, and what each of them says about itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import probe
from proveout.preflight.requirements import PACKAGES_ASKED

MODULES = ("megatron.bridge", "megatron.core", "modelopt", "ray", "pyarrow")


def workers(context: PreflightContext) -> tuple[Worker, ...]:
    """The interpreters of all wanted loops: those that were named, then those that the loops' rules give."""
    found = list(context.workers)
    for loop in sorted(context.wanted):
        if not any(worker.loop == loop for worker in context.workers):
            found += _of_loop(context, loop)
    return tuple(found)


def _of_loop(context: PreflightContext, loop: str) -> Iterable[Worker]:
    programs = {command.argv[0] for command in context.commands(loop) if _is_python(command.argv[0])}
    for program in sorted(programs) or [context.python]:
        yield Worker(name=loop, argv=(program,), loop=loop)


def _is_python(program: str) -> bool:
    return Path(program).name.startswith("python")


def environment(context: PreflightContext, worker: Worker) -> dict[str, str]:
    """The environment that the worker would have."""
    return {**context.environment(worker.loop), **worker.env}


def report(context: PreflightContext, worker: Worker) -> dict[str, Any]:
    """What the interpreter says of itself; asked once for all checks. Raises BlockedError where it cannot."""
    key = f"interpreter {worker.argv} {worker.loop} {sorted(worker.env.items())} {worker.cwd}"
    if key not in context.memo:
        env = environment(context, worker)
        program = shutil.which(worker.argv[0], path=env.get("PATH")) or worker.argv[0]
        context.memo[key] = probe.ask(
            "interpreter",
            (program, *worker.argv[1:]),
            {"modules": MODULES, "packages": PACKAGES_ASKED},
            env=env,
            cwd=worker.cwd or None,
        )
    answer: dict[str, Any] = context.memo[key]
    return answer
