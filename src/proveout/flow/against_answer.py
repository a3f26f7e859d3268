"""What runs of a step with the change, and on the commit before it, say together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proveout.domain.attribution import Answer
from proveout.domain.claims import deciding
from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Boundary
from proveout.domain.verdict import Verdict

_VARIES = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?|/[\w./+-]+", re.IGNORECASE)
_WRONG_TREE = "judge.provenance."


def answer_of(change: Sequence[AttemptResult], base: Sequence[AttemptResult]) -> tuple[Answer, str]:
    """The answer, and why where nothing is decided. ``change`` begins with the attempt that did not pass.

    A failure is new only where every run with the change failed and every run on the base passed; it was there
    before only where the base fails in the same way. Both sides stopped by the environment say nothing of either.
    """
    ours, theirs = {result.verdict for result in change}, {result.verdict for result in base}
    if Verdict.PASS in ours or theirs == {Verdict.PASS, Verdict.FAIL}:
        return Answer.FLAKY, ""
    if theirs == {Verdict.PASS}:
        differ = "the runs with the change ended in different ways" if len(ours) > 1 else ""
        return (Answer.UNDECIDED if differ else Answer.NEW), differ
    if theirs == {Verdict.BLOCKED} and ours == theirs:
        return Answer.ENVIRONMENT, ""
    if theirs == {Verdict.FAIL}:
        differ = _differs(change, base)
        return (Answer.UNDECIDED if differ else Answer.PRE_EXISTING), differ
    return Answer.UNDECIDED, (
        "the environment stopped the base, so it shows nothing"
        if Verdict.BLOCKED in theirs
        else "no run on the base came to an end that says anything"
    )


def _differs(change: Sequence[AttemptResult], base: Sequence[AttemptResult]) -> str:
    """Why a failure on the base is not that of the change; '' where it is the same."""
    if any(finding.id.startswith(_WRONG_TREE) for result in base for finding in deciding(result)):
        return "nothing shows that the base's run imported the base"
    if change[0].verdict is Verdict.FAIL and any(same_failure(change[0], result) for result in base):
        return ""
    return f"the base fails too, but otherwise: {cause_of(base[0])}"


def same_failure(one: AttemptResult, other: AttemptResult) -> bool:
    """Whether two attempts failed in the same way: same findings, same boundary, same words of the cause."""
    return _signature(one) == _signature(other)


def cause_of(result: AttemptResult) -> str:
    """One line on why an attempt did not pass; '' where it did."""
    if result.verdict is Verdict.PASS:
        return ""
    if result.triage is not None and result.triage.cause is not None:
        return result.triage.cause.text.strip()
    reasons = deciding(result)
    return reasons[0].what if reasons else str(result.exit)


def _signature(result: AttemptResult) -> tuple[frozenset[str], Boundary | None, str, str]:
    triage = result.triage
    said = ""
    if triage is not None:
        said = triage.cause.text if triage.cause is not None else triage.undecided_because
    return (
        frozenset(finding.id for finding in deciding(result)),
        triage.boundary if triage is not None else None,
        triage.subkind if triage is not None else "",
        " ".join(_VARIES.sub("#", said).split()),
    )
