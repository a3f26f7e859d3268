"""From where the workers of each loop import Megatron, as evidence for the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proveout.domain.errors import BlockedError
from proveout.domain.evidence import ImportRecord
from proveout.domain.finding import Citation, Where
from proveout.domain.preflight import PreflightContext, Worker
from proveout.preflight import interpreters, workers
from proveout.preflight.checks import imports
from proveout.preflight.checks.ray_imports import RAY_ANSWERS

IMPORTER = "worker"


def import_records(context: PreflightContext) -> dict[str, tuple[ImportRecord, ...]]:
    """Loop -> what its worker interpreters, and Ray workers that were asked, import; asked once a context."""
    found: dict[str, list[ImportRecord]] = {}
    if not imports.applies(context):
        return {}
    for worker in workers.of_run(context):
        if imports.uses_megatron(context, worker.loop):
            try:
                answer = interpreters.report(context, worker)
            except BlockedError:
                continue
            found.setdefault(worker.loop, []).extend(_records(worker, worker.name, worker.argv[0], answer))
    for worker, who, answer in context.memo.get(RAY_ANSWERS, ()):
        found.setdefault(worker.loop, []).extend(_records(worker, who, answer["executable"], answer))
    return {loop: tuple(records) for loop, records in found.items()}


def _records(worker: Worker, who: str, program: str, answer: Mapping[str, Any]) -> Iterator[ImportRecord]:
    for module in (interpreters.BRIDGE, interpreters.MCORE):
        imported = answer["imported"].get(module) or {}
        path = imported.get("file") or answer["modules"][module]["origin"]
        if path:
            cited = Citation(
                what=f"{module} as {who} finds it, asked before the run",
                where=Where(file=program, key=f"import {module}"),
                text=path,
            )
            yield ImportRecord(module=module, path=path, importer=IMPORTER, where=cited)
