"""Short ways to build findings and citations, so that every criterion cites in the same form."""

from __future__ import annotations

import math

import msgspec

from proveout.domain import redact
from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.domain.metrics import Series
from proveout.domain.verdict import Verdict

_TEXT_LIMIT = 400
_STEPS_SHOWN = 8


def number(value: float) -> str:
    """A value as it was compared: every digit, ``nan`` and ``inf`` by name."""
    return repr(float(value)) if not float(value).is_integer() or abs(value) > 1e15 else str(int(value))


def steps_text(steps: list[int]) -> str:
    """``step 4`` or ``steps 2, 3, 4``, cut after eight with the count of the rest."""
    shown = ", ".join(str(step) for step in steps[:_STEPS_SHOWN])
    rest = f" and {len(steps) - _STEPS_SHOWN} more" if len(steps) > _STEPS_SHOWN else ""
    return f"step{'s' if len(steps) != 1 else ''} {shown}{rest}"


def point(tag: str, series: Series, step: int, what: str) -> Citation:
    """A citation of one value of a series."""
    value = series.as_dict().get(step, math.nan)
    return Citation(
        what=what,
        where=Where(file=series.source or None, metric=tag, step=step),
        text=f"{tag} = {number(value) if math.isfinite(value) else value} at step {step}",
    )


def log_line(file: str, line: int, text: str, what: str) -> Citation:
    """A citation of a log line: secrets masked, long lines cut."""
    return Citation(
        what=what, where=Where(file=file, line=line), text=redact.text(text.strip())[:_TEXT_LIMIT]
    )


def error(
    identity: str,
    what: str,
    *,
    where: Where | None = None,
    remedy: str = "",
    evidence: tuple[Citation, ...] = (),
    boundary: Boundary | None = None,
    verdict: Verdict | None = None,
) -> Finding:
    """An ERROR of the judge: ``judge.<identity>``."""
    return Finding(
        id=f"judge.{identity}",
        severity=Severity.ERROR,
        what=what,
        where=_place(where, evidence),
        remedy=remedy,
        evidence=evidence,
        boundary=boundary,
        verdict=verdict,
    )


def warning(
    identity: str,
    what: str,
    *,
    where: Where | None = None,
    remedy: str = "",
    evidence: tuple[Citation, ...] = (),
) -> Finding:
    """A WARNING of the judge: what it limits in the claim."""
    return msgspec.structs.replace(
        error(identity, what, where=where, remedy=remedy, evidence=evidence), severity=Severity.WARNING
    )


def notice(
    identity: str,
    what: str,
    *,
    where: Where | None = None,
    remedy: str = "",
    evidence: tuple[Citation, ...] = (),
) -> Finding:
    """A NOTICE of the judge."""
    return msgspec.structs.replace(
        error(identity, what, where=where, remedy=remedy, evidence=evidence), severity=Severity.NOTICE
    )


def _place(where: Where | None, evidence: tuple[Citation, ...]) -> Where:
    return where or (evidence[0].where if evidence else Where())
