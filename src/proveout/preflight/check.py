"""What a check is, and the three ways in which it may speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from proveout.domain.finding import Boundary, Citation, Finding, Severity, Where
from proveout.domain.preflight import PreflightContext
from proveout.domain.verdict import Verdict

NOWHERE = Where()


class Cost(StrEnum):
    """How long a check takes: INSTANT under 50 ms, FAST under a second, SLOW more (progress is shown)."""

    INSTANT = "instant"
    FAST = "fast"
    SLOW = "slow"


def always(context: PreflightContext) -> bool:
    """Applies to every run."""
    return True


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that is proved before a run.

    ``proves`` says what holds when nothing is found; ``remedy`` what to do in general when something is;
    ``run`` yields findings and may raise: whoever runs it turns that into a finding.
    """

    id: str
    proves: str
    remedy: str
    run: Callable[[PreflightContext], Iterable[Finding]]
    cost: Cost = Cost.INSTANT
    applies: Callable[[PreflightContext], bool] = always


def blocked(
    name: str, what: str, *, where: Where = NOWHERE, remedy: str = "", evidence: Iterable[Citation] = ()
) -> Finding:
    """The environment is such that the run would not test the change, or not run at all."""
    return Finding(
        id=f"preflight.{name}",
        severity=Severity.ERROR,
        what=what,
        where=where,
        remedy=remedy,
        boundary=Boundary.ENVIRONMENT,
        verdict=Verdict.BLOCKED,
        evidence=tuple(evidence),
    )


def warning(
    name: str, what: str, *, where: Where = NOWHERE, remedy: str = "", evidence: Iterable[Citation] = ()
) -> Finding:
    """The run can go on, but less may be claimed or it may stop later."""
    return Finding(
        id=f"preflight.{name}",
        severity=Severity.WARNING,
        what=what,
        where=where,
        remedy=remedy,
        boundary=Boundary.ENVIRONMENT,
        evidence=tuple(evidence),
    )


def notice(name: str, what: str, *, where: Where = NOWHERE, remedy: str = "") -> Finding:
    """Worth knowing, and nothing more."""
    return Finding(id=f"preflight.{name}", severity=Severity.NOTICE, what=what, where=where, remedy=remedy)
