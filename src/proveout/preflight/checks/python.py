"""The interpreters that run the loops: they start, and are new enough for what runs in them."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, workers
from proveout.preflight.check import Check, Cost, blocked

OWN = ">=3.11"
"""What proveout_bench needs, as pyproject.toml declares it."""


def run(context: PreflightContext) -> Iterator[Finding]:
    """One finding for each interpreter that does not start or is too old."""
    for worker in workers.of_run(context):
        where = Where(file=worker.argv[0])
        try:
            answer = interpreters.report(context, worker)
        except BlockedError as error:
            yield blocked(
                "python.start",
                f"the interpreter of {worker.name} {error.what}",
                where=where,
                remedy="name one that works with --python, or repair its environment",
            )
            continue
        if worker.loop == "bench" and not SpecifierSet(OWN).contains(answer["version"]):
            yield blocked(
                "python.version",
                f"the bench loop needs Python {OWN}; {worker.name} is {answer['version']}",
                where=where,
                remedy="run it with a newer interpreter (--python)",
            )


CHECK = Check(
    id="python",
    proves="every interpreter that will run a loop starts and answers; that of the bench loop is new enough",
    remedy="repair the environment or name another interpreter",
    cost=Cost.FAST,
    run=run,
)
