"""The packages of the bench extra are there, in the versions that were tried together."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, workers
from proveout.preflight.check import Check, Cost, blocked, warning
from proveout.preflight.loops import wants
from proveout.preflight.requirements import of_extra, satisfied

REMEDY = "python -m pip install 'proveout[bench]' (torch first, by pip) for that interpreter"


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding that names all absent packages, one that names all of another version."""
    for worker in workers.of_run(context):
        if worker.loop != "bench":
            continue
        try:
            installed = interpreters.report(context, worker)["packages"]
        except BlockedError:
            continue  # the python check says so
        wanted = of_extra("bench")
        absent = [str(need.name) for need in wanted if installed.get(need.name) is None]
        other = [
            f"{need.name} {installed[need.name]} (wants {need.specifier})"
            for need in wanted
            if installed.get(need.name) is not None and not satisfied(need, installed[need.name])
        ]
        where = Where(file=worker.argv[0])
        if absent:
            yield blocked(
                "packages.missing",
                f"the bench loop's interpreter lacks {', '.join(absent)}",
                where=where,
                remedy=REMEDY,
            )
        if other:
            yield warning(
                "packages.version",
                f"other versions than those that were tried together: {', '.join(other)}",
                where=where,
                remedy=REMEDY,
            )


CHECK = Check(
    id="packages",
    proves="the bench loop's interpreter has the packages of the bench extra, in the declared versions",
    remedy=REMEDY,
    cost=Cost.FAST,
    applies=wants("bench"),
    run=run,
)
