"""An answer as one JSON object, and as text for a terminal."""

from __future__ import annotations

from typing import Any

from proveout.domain.evidence import TriageResult
from proveout.domain.finding import Citation


def as_object(result: TriageResult) -> dict[str, Any]:
    """The published JSON object: boundary, subkind, stage, verdict, confidence, cause, aftermath, noise, ..."""
    return {
        "boundary": result.boundary.value,
        "subkind": result.subkind,
        "stage": result.stage,
        "verdict": result.verdict.value,
        "confidence": result.confidence,
        "cause": _place(result.cause) if result.cause is not None else None,
        "aftermath": [_place(citation) for citation in result.aftermath],
        "noise": [_place(citation) for citation in result.noise],
        "remedy": result.remedy,
        "undecided_because": result.undecided_because,
    }


def as_text(result: TriageResult) -> str:
    """The same for people: the answer first, then the line that caused it, what to do, and the rest."""
    kind = f" ({result.subkind})" if result.subkind else ""
    rows = [f"{result.verdict.value}: {result.boundary.value}{kind}"]
    rows.append(f"  stage reached: {result.stage or 'not told'}; confidence: {result.confidence}")
    if result.cause is not None:
        rows += [
            f"  cause: {result.cause.where}",
            f"    {result.cause.text.strip()}",
            f"    {result.cause.what}",
        ]
    if result.undecided_because:
        rows.append(f"  undecided: {result.undecided_because}")
    if result.remedy:
        rows.append(f"  what to do: {result.remedy}")
    rows += _listed("what it caused", result.aftermath)
    rows += _listed("ignored", result.noise)
    return "\n".join(rows)


def _place(citation: Citation) -> dict[str, Any]:
    return {"file": citation.where.file, "line": citation.where.line, "text": citation.text}


def _listed(title: str, citations: tuple[Citation, ...]) -> list[str]:
    if not citations:
        return []
    return [f"  {title}:", *(f"    {c.where}: {c.text.strip()[:140]}" for c in citations)]
