"""JSON under a published, versioned schema (``docs/schema/report.json``)."""

from __future__ import annotations

from typing import Any

import msgspec

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Citation
from proveout.domain.report import Report
from proveout.domain.verdict import Verdict


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence, flat: what it shows and the file, line, metric and step where it stands."""

    what: str
    file: str | None
    line: int | None
    metric: str | None
    step: int | None
    text: str


class StepItem(msgspec.Struct, frozen=True, kw_only=True):
    """One step, flat: which level and variant it covers, its verdict and its attempts."""

    id: str
    loop: str
    level: int
    variant: str
    verdict: Verdict
    reason: str
    attempts: tuple[AttemptResult, ...]


def render(report: Report) -> str:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document(report)), indent=2).decode() + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data, with evidence and steps flat."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    plain["evidence"] = [msgspec.to_builtins(_flat(cited)) for cited in report.evidence]
    plain["steps"] = [msgspec.to_builtins(_flat_step(step)) for step in report.steps]
    return plain


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``render`` writes."""
    kinds = (Report, EvidenceItem, StepItem)
    (_, evidence, step), components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    properties = components["Report"]["properties"]
    properties["evidence"] = {"type": "array", "items": evidence}
    properties["steps"] = {"type": "array", "items": step}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "proveout report",
        "$ref": "#/$defs/Report",
        "$defs": components,
    }


def _flat_step(step: StepResult) -> StepItem:
    covered = step.coverage
    return StepItem(
        id=step.id,
        loop=covered.loop,
        level=covered.level,
        variant=covered.variant,
        verdict=step.verdict,
        reason=step.reason,
        attempts=step.attempts,
    )


def _flat(cited: Citation) -> EvidenceItem:
    where = cited.where
    return EvidenceItem(
        what=cited.what,
        file=where.file,
        line=where.line,
        metric=where.metric,
        step=where.step,
        text=cited.text,
    )
