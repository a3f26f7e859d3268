"""Which megatron.bridge and megatron.core the worker's own interpreter would import."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, workers
from proveout.preflight.check import Check, Cost, notice, warning
from proveout.preflight.loops import STACK
from proveout.preflight.origins import differences


def uses_megatron(context: PreflightContext, loop: str) -> bool:
    """Whether the loop trains with Megatron: the stacks do, others when their commands say so."""
    if loop in STACK:
        return True
    return any("megatron" in word for command in context.commands(loop) for word in command.argv)


def applies(context: PreflightContext) -> bool:
    """Whether there is a checkout under test and a loop that should import it."""
    under_test = bool(context.checkouts.keys() & {"bridge", "mcore"})
    return under_test and any(uses_megatron(context, loop) for loop in context.wanted)


def run(context: PreflightContext) -> Iterator[Finding]:
    """Asks every worker; says so where there is none to ask yet."""
    found = workers.of_run(context)
    for loop in sorted(context.wanted):
        if not uses_megatron(context, loop):
            continue
        mine = [worker for worker in found if worker.loop == loop]
        if not mine:
            yield _nobody(context, loop)
        for worker in mine:
            try:
                answer = interpreters.report(context, worker)
            except BlockedError:
                continue  # the python check says so
            yield from differences(context, "imports", worker.name, worker.argv[0], answer)
        if mine and loop == "nemo-rl" and _rebuilds(context):
            yield notice(
                "imports.rebuild",
                "NRL_FORCE_REBUILD_VENVS=true: the environments that were asked are built anew by the run",
                remedy="rely on the provenance that the run itself records",
            )


def _rebuilds(context: PreflightContext) -> bool:
    return context.environment("nemo-rl").get("NRL_FORCE_REBUILD_VENVS", "").lower() == "true"


def _nobody(context: PreflightContext, loop: str) -> Finding:
    place = workers.nemo_rl_venvs(context) if loop == "nemo-rl" else workers.verl_venv(context)
    return warning(
        "imports.nobody",
        f"no worker environment of {loop} is built yet: what it will import cannot be shown before the run",
        where=Where(file=str(place)) if place else Where(),
        remedy=f"build it first (its first run does), or name the interpreter (--loop {loop} --python PATH)",
    )


CHECK = Check(
    id="imports",
    proves="the interpreters of the loop's workers import Megatron (Bridge and Core) from the checkouts",
    remedy="put the checkouts first on the PYTHONPATH that the workers get, or rebuild their environments",
    cost=Cost.FAST,
    applies=applies,
    run=run,
)
