"""The verdict of an attempt from what judge and triage say."""

from __future__ import annotations

from proveout.domain.evidence import End, ExitRecord, Judgement, TriageResult
from proveout.domain.verdict import Verdict

_UNFINISHED = {End.INTERRUPTED, End.LOST}


def settle(ended: ExitRecord, judgement: Judgement, triage: TriageResult | None) -> Verdict:
    """Pass only where the judge passes it; Blocked only where triage proves the environment's fault.

    An attempt that somebody stopped, or that nobody saw end, is Incomplete whatever else is known of it; one that
    the scheduler or the machine ended is Blocked.
    """
    if ended.end in _UNFINISHED:
        return Verdict.INCOMPLETE
    if ended.end is End.EVICTED:
        return Verdict.BLOCKED
    if judgement.verdict is Verdict.FAIL and triage is not None and triage.verdict is Verdict.BLOCKED:
        return Verdict.BLOCKED
    return judgement.verdict
