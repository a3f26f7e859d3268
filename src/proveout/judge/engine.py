"""From the evidence of one attempt to its verdict."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from proveout.domain.errors import ProveoutError, nearest
from proveout.domain.evidence import CriterionResult, End, Evidence, Judgement
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.step import Criterion
from proveout.domain.verdict import Verdict, worst
from proveout.judge.registry import ALWAYS, CRITERIA

_UNFINISHED = (End.INTERRUPTED, End.LOST)


def judge(evidence: Evidence) -> Judgement:
    """The verdict of one attempt, with what every criterion found and what it saw hold.

    The criteria of ``ALWAYS`` are applied whether the step lists them or not. Pass needs exit status 0 and no
    ERROR finding. An attempt that was interrupted or lost is Incomplete, one that the machine ended is Blocked;
    one that never started is judged by its exit record alone. A criterion that is unknown, has wrong parameters
    or fails inside is an ERROR.
    """
    results = tuple(_results(evidence))
    return Judgement(verdict=_verdict(evidence, results), results=results)


def _results(evidence: Evidence) -> Iterator[CriterionResult]:
    if evidence.findings:
        yield CriterionResult(kind="evidence", findings=evidence.findings)
    listed = evidence.step.criteria
    if evidence.exit.end is End.NOT_STARTED:
        yield _apply(evidence, Criterion(kind="exit"))
        return
    named = {criterion.kind for criterion in listed}
    for kind in ALWAYS:
        if kind not in named:
            yield _apply(evidence, Criterion(kind=kind))
    for criterion in listed:
        yield _apply(evidence, criterion)


def _apply(evidence: Evidence, criterion: Criterion) -> CriterionResult:
    function = CRITERIA.get(criterion.kind)
    if function is None:
        return _broken(
            criterion, "unknown", f"no criterion {criterion.kind!r}{nearest(criterion.kind, CRITERIA)}"
        )
    try:
        return function(evidence, criterion.params)
    except (ProveoutError, msgspec.ValidationError) as error:
        return _broken(criterion, "params", str(error))
    except Exception as error:
        return _broken(criterion, "crashed", f"could not be judged: {type(error).__name__}: {error}")


def _broken(criterion: Criterion, how: str, what: str) -> CriterionResult:
    finding = Finding(
        id=f"judge.{criterion.kind}.{how}",
        severity=Severity.ERROR,
        what=what,
        where=Where(key=f"criteria.{criterion.kind}"),
        remedy="correct the step's criterion; nothing that it was to judge counts as shown",
        evidence=(Citation(what="the parameters as given", text=repr(criterion.params)[:300]),),
    )
    return CriterionResult(kind=criterion.kind, findings=(finding,))


def _verdict(evidence: Evidence, results: tuple[CriterionResult, ...]) -> Verdict:
    if evidence.exit.end in _UNFINISHED:
        return Verdict.INCOMPLETE
    if evidence.exit.end is End.EVICTED:
        return Verdict.BLOCKED
    decided = [f.decides for result in results for f in result.findings if f.decides is not None]
    if not decided:
        return Verdict.PASS if evidence.exit.ok else Verdict.FAIL
    verdict = worst(decided)
    return verdict if verdict in (Verdict.INCOMPLETE, Verdict.BLOCKED) else Verdict.FAIL
