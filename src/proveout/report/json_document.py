"""JSON under a published, versioned schema (``docs/schema/report.json``)."""

from __future__ import annotations

from typing import Any

import msgspec

from proveout.domain.finding import Citation
from proveout.domain.report import Report


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence, flat: what it shows and the file, line, metric and step where it stands."""

    what: str
    file: str | None
    line: int | None
    metric: str | None
    step: int | None
    text: str


def render(report: Report) -> str:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document(report)), indent=2).decode() + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data, with its evidence flat."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    plain["evidence"] = [msgspec.to_builtins(_flat(cited)) for cited in report.evidence]
    return plain


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``render`` writes."""
    (_, item), components = msgspec.json.schema_components(
        (Report, EvidenceItem), ref_template="#/$defs/{name}"
    )
    report = components["Report"]
    report["properties"]["evidence"] = {"type": "array", "items": item}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "proveout report",
        "$ref": "#/$defs/Report",
        "$defs": components,
    }


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
