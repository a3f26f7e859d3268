"""The verdict of an attempt from what judge and triage say, and from whether the provider was constructed."""

from __future__ import annotations

from proveout.domain.evidence import End, ExitRecord, Judgement, TriageResult
from proveout.domain.finding import Boundary, Finding, Severity, Where
from proveout.domain.verdict import Verdict
from proveout.triage.construction import Construction, Reached

_UNFINISHED = {End.INTERRUPTED, End.LOST}
_PLAIN = "high"
_SAYS = {
    Reached.BUILT: "the provider had been constructed when the run stopped",
    Reached.BEGUN: "construction of the provider had begun, and nothing shows that it was finished",
    Reached.BEFORE: "the run stopped before the provider was constructed",
    Reached.UNKNOWN: "nothing in the log shows how far the run came",
}


def settle(
    ended: ExitRecord,
    judgement: Judgement,
    triage: TriageResult | None,
    construction: Construction | None = None,
) -> Verdict:
    """Pass only where the judge passes it; Blocked only where the stop is proved to be the environment's.

    Before the provider is constructed that is what triage puts down to the environment, and a generation engine
    that failed to start; after it, only a cause that is plainly the environment's. An attempt that somebody
    stopped, or that nobody saw end, is Incomplete whatever else is known of it; one that the scheduler or the
    machine ended is Blocked.
    """
    if ended.end in _UNFINISHED:
        return Verdict.INCOMPLETE
    if ended.end is End.EVICTED:
        return Verdict.BLOCKED
    if judgement.verdict is not Verdict.FAIL or triage is None:
        return judgement.verdict
    reached = construction.reached if construction is not None else Reached.UNKNOWN
    if triage.verdict is Verdict.BLOCKED:
        plain = reached is not Reached.BUILT or triage.confidence == _PLAIN
        return Verdict.BLOCKED if plain else Verdict.FAIL
    engine = triage.boundary is Boundary.GENERATION and triage.cause is not None
    return Verdict.BLOCKED if engine and reached is Reached.BEFORE else Verdict.FAIL


def explained(
    construction: Construction, verdict: Verdict, triage: TriageResult | None
) -> tuple[Finding, ...]:
    """How far the run came and what followed from it, with the line that shows it; nothing for a Pass."""
    if verdict not in (Verdict.FAIL, Verdict.BLOCKED):
        return ()
    what = _SAYS[construction.reached]
    if verdict is Verdict.BLOCKED:
        what += ": the environment stopped it, so it is Blocked and no evidence against the change"
    elif triage is not None and triage.verdict is Verdict.BLOCKED:
        what += ": the cause is not plainly the environment's, so it is a Fail"
    shown = (construction.shown,) if construction.shown is not None else ()
    return (
        Finding(
            id=f"flow.construction.{construction.reached.value}",
            severity=Severity.NOTICE,
            what=what,
            where=shown[0].where if shown else Where(),
            evidence=shown,
        ),
    )
