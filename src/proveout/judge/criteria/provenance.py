"""Provenance: the modules that the run imported are the ones under test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence, ImportRecord
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.judge import say


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``expected`` maps a module to the directory (or several) that it must come from.

    ``by`` names who must have imported it (worker, driver, probe), each of them; without it anyone will do.
    """

    expected: dict[str, str | tuple[str, ...]]
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.expected:
            raise ValueError("expected: at least one module is needed")


def provenance(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every expected module was seen imported, by whom it must be, and from where it must be."""
    wanted = msgspec.convert(dict(params), Params)
    findings: list[Finding] = []
    held: list[Citation] = []
    for module, places in wanted.expected.items():
        roots = (places,) if isinstance(places, str) else places
        seen = [record for record in evidence.imports if record.module == module]
        judged = [record for record in seen if not wanted.by or record.importer in wanted.by]
        for importer in wanted.by or ("anyone",):
            if not any(importer in ("anyone", record.importer) for record in judged):
                findings.append(_unseen(evidence, module, importer, seen))
        for record in seen:
            if _inside(record.path, roots):
                held.append(_cite(record, "comes from the tree under test"))
            else:
                findings.append(_foreign(record, roots, decides=record in judged))
    return CriterionResult(kind="provenance", findings=tuple(findings), held=tuple(held))


def _inside(path: str, roots: tuple[str, ...]) -> bool:
    if not path:
        return False
    real = PurePath(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


def _cite(record: ImportRecord, what: str) -> Citation:
    where = record.where.where if record.where is not None else Where(key=f"import {record.module}")
    return Citation(
        what=f"{record.module} in the {record.importer} {what}",
        where=where,
        text=f"{record.module} imported from {record.path}",
    )


def _foreign(record: ImportRecord, roots: tuple[str, ...], *, decides: bool) -> Finding:
    what = f"{record.module} in the {record.importer} comes from {record.path}, not from {' or '.join(roots)}"
    cite = (_cite(record, "comes from elsewhere"),)
    if not decides:
        return say.warning("provenance.elsewhere", what, evidence=cite)
    return say.error(
        "provenance.foreign",
        what,
        evidence=cite,
        boundary=Boundary.PROVIDER,
        remedy="the change was not exercised: put its tree first on the workers' path or rebuild their venv",
    )


def _unseen(evidence: Evidence, module: str, importer: str, seen: list[ImportRecord]) -> Finding:
    others = ", ".join(sorted({record.importer for record in seen}))
    return say.error(
        "provenance.unseen",
        f"nothing shows that {importer} imported {module}" + (f" (only {others} did)" if others else ""),
        where=Where(file=evidence.log, key=f"import {module}"),
        remedy="without it nobody can say which code ran",
    )
