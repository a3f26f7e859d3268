"""Exit: the attempt ended by itself with status 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, End, Evidence
from proveout.domain.finding import Boundary, Citation, Where
from proveout.domain.verdict import Verdict
from proveout.judge import say

_BOUNDARY = {
    End.INTERRUPTED: Boundary.INCOMPLETE,
    End.LOST: Boundary.INCOMPLETE,
    End.TIMED_OUT: Boundary.HANG,
    End.EVICTED: Boundary.ENVIRONMENT,
}
_VERDICT = {
    End.INTERRUPTED: Verdict.INCOMPLETE,
    End.LOST: Verdict.INCOMPLETE,
    End.NOT_STARTED: Verdict.BLOCKED,
    End.EVICTED: Verdict.BLOCKED,
}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters: nothing else than status 0 passes."""


def exit_status(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Exit status 0; a command that was never started is Blocked, one that nobody saw end Incomplete."""
    msgspec.convert(dict(params), Params)
    how = evidence.exit
    cite = Citation(
        what="how the attempt ended", where=Where(key=f"attempt {evidence.attempt}"), text=str(how)
    )
    if how.ok:
        return CriterionResult(kind="exit", held=(cite,))
    finding = say.error(
        "exit.status",
        f"the command did not end with status 0: {how}",
        evidence=(cite,),
        boundary=_BOUNDARY.get(how.end),
        verdict=_VERDICT.get(how.end),
        remedy="see the first error in the log",
    )
    return CriterionResult(kind="exit", findings=(finding,))
