"""Which Megatron a Ray worker would import: asked inside one, as the loop would start it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import interpreters, limits, probe, ray_clusters, workers
from proveout.preflight.check import Check, Cost, blocked, warning
from proveout.preflight.checks import imports
from proveout.preflight.loops import STACK
from proveout.preflight.origins import differences

RAY_ANSWERS = "answers of Ray workers"
FORWARDED = "ray_kwargs.ray_init.runtime_env.env_vars."


def target(context: PreflightContext) -> str:
    """The address to ask at: that of a running cluster, ``local`` for one of our own, or nothing."""
    wish = limits.text(context, "ray.probe")
    if wish == "local":
        return "local"
    joined = ray_clusters.joined(context) if wish == "auto" else None
    return joined.address if joined and ray_clusters.answers(joined.address) else ""


def applies(context: PreflightContext) -> bool:
    """Whether a stack loop imports a checkout and there is a cluster to ask in."""
    return bool(context.wanted & STACK) and imports.applies(context) and bool(target(context))


def runtime_env(context: PreflightContext, worker: Worker) -> dict[str, Any]:
    """What the loop gives to ``ray.init``.

    NeMo-RL hands on its whole environment and names the actor's interpreter (virtual_cluster.py, venvs.py);
    verl hands on what its overrides name, and under uv the project's interpreter (main_ppo.py, the wrapper).
    """
    env = interpreters.environment(context, worker)
    if worker.loop == "nemo-rl":
        forwarded = {"PYTHONPATH": env["PYTHONPATH"]} if env.get("PYTHONPATH") else {}
        return {"env_vars": forwarded, "py_executable": worker.argv[0]}
    words = [word.lstrip("+") for command in context.commands(worker.loop) for word in command.argv]
    pairs = [word[len(FORWARDED) :].split("=", 1) for word in words if word.startswith(FORWARDED)]
    asked: dict[str, Any] = {"env_vars": {pair[0]: pair[1] for pair in pairs if len(pair) == 2}}
    if worker.loop == "verl" and workers.uses_uv(context):
        asked["py_executable"] = worker.argv[0]
    return asked


def driver(context: PreflightContext, worker: Worker) -> tuple[str, ...]:
    """The interpreter that calls ``ray.init``: the driver's own of NeMo-RL, else that of the worker."""
    checkout = context.checkouts.get("nemo-rl")
    own = Path(checkout or "") / ".venv" / "bin" / "python"
    if worker.loop == "nemo-rl" and checkout and own.exists():
        return (str(own),)
    return (workers.program(worker, interpreters.environment(context, worker)), *worker.argv[1:])


def run(context: PreflightContext) -> Iterator[Finding]:
    """Asks one worker for each worker interpreter of the stack loops."""
    address = target(context)
    seconds = limits.number(context, "ray.seconds")
    for worker in workers.of_run(context):
        if worker.loop not in STACK:
            continue
        question = {
            **interpreters.question(context, worker),
            "first": "",
            "address": address,
            "runtime_env": runtime_env(context, worker),
            "seconds": seconds * 0.6,
        }
        program = driver(context, worker)
        env = interpreters.environment(context, worker)
        where = Where(file=worker.argv[0], key=f"Ray at {address}")
        try:
            answer = probe.ask(
                "ray_worker", program, question, env=env, cwd=worker.cwd or None, timeout=seconds
            )
        except BlockedError as error:
            yield warning(
                "ray-imports.driver",
                f"no Ray worker of {worker.name} could be asked: {error.what}",
                where=where,
                remedy="the interpreter that calls ray.init needs Ray; name it with --python",
            )
            continue
        if answer["error"]:
            yield blocked(
                "ray-imports.start",
                f"a Ray worker of {worker.name} does not start: {' '.join(answer['error'].split())[:400]}",
                where=where,
                remedy="repair the cluster or the runtime environment; the run would fail in the same way",
            )
            continue
        who = f"a Ray worker of {worker.name}"
        context.memo.setdefault(RAY_ANSWERS, []).append((worker, who, answer["worker"]))
        yield from differences(context, "ray-imports", who, answer["worker"]["executable"], answer["worker"])


CHECK = Check(
    id="ray-imports",
    proves="a worker of the Ray cluster, started as the loop would, imports Megatron from the checkouts",
    remedy="hand PYTHONPATH to the workers by the runtime environment, or start the cluster again with it",
    cost=Cost.SLOW,
    applies=applies,
    run=run,
)
