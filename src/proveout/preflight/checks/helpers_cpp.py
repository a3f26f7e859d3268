"""Megatron-Core's compiled helper, built for the interpreter that will load it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight import interpreters, workers
from proveout.preflight.check import Check, Cost, warning
from proveout.preflight.checks.imports import uses_megatron

STEM = "helpers_cpp"


def run(context: PreflightContext) -> Iterator[Finding]:
    """A helper was built beside the megatron.core that a worker takes, but not under that worker's suffix."""
    for worker in workers.of_run(context):
        if not uses_megatron(context, worker.loop):
            continue
        try:
            answer = interpreters.report(context, worker)
        except BlockedError:
            continue  # the python check says so
        origin = answer["modules"][interpreters.MCORE]["origin"]
        if origin is None:
            continue  # the imports check says so
        datasets = Path(origin).parent / "datasets"
        built = sorted(
            file.name for file in datasets.glob(f"{STEM}*") if file.name != f"{STEM}.cpp" and file.is_file()
        )
        if built and f"{STEM}{answer['ext_suffix']}" not in built:
            yield warning(
                "helpers-cpp.suffix",
                f"{', '.join(built)} is there, but {worker.name} loads {STEM}{answer['ext_suffix']}",
                where=Where(file=str(datasets)),
                remedy="build it with the worker's interpreter (make LIBEXT=... without python3-config)",
            )


CHECK = Check(
    id="helpers-cpp",
    proves="a compiled Megatron-Core helper that is there has the suffix of the worker's interpreter",
    remedy="build it anew with that interpreter (make LIBEXT=...)",
    cost=Cost.FAST,
    applies=lambda context: any(uses_megatron(context, loop) for loop in context.wanted),
    run=run,
)
