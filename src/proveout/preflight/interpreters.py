"""What each interpreter says about itself; asked once, for all checks."""

from __future__ import annotations

from typing import Any

from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import limits, probe, workers
from proveout.preflight.requirements import PACKAGES_ASKED

BRIDGE, MCORE = "megatron.bridge", "megatron.core"
MODULES = (BRIDGE, MCORE, "modelopt", "ray", "pyarrow")


def environment(context: PreflightContext, worker: Worker) -> dict[str, str]:
    """The environment that the worker would have."""
    return {**context.environment(worker.loop), **worker.env}


def question(context: PreflightContext, worker: Worker) -> dict[str, Any]:
    """What an interpreter is asked."""
    earnest = limits.text(context, "probe.real_import") == "yes"
    return {
        "modules": MODULES,
        "packages": PACKAGES_ASKED,
        "imports": (BRIDGE, MCORE) if earnest else (),
        "first": worker.cwd,
    }


def report(context: PreflightContext, worker: Worker) -> dict[str, Any]:
    """The answer of ``probes/interpreter.py`` (see there). Raises BlockedError where there is none."""
    key = f"interpreter {worker.argv} {worker.loop} {sorted(worker.env.items())} {worker.cwd}"
    if key not in context.memo:
        env = environment(context, worker)
        context.memo[key] = probe.ask(
            "interpreter",
            (workers.program(worker, env), *worker.argv[1:]),
            question(context, worker),
            env=env,
            cwd=worker.cwd or None,
            timeout=limits.number(context, "probe.seconds"),
        )
    answer: dict[str, Any] = context.memo[key]
    return answer
