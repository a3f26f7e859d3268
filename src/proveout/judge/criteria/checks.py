"""Checks: the step's metric expressions hold on the metrics of this attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CheckRow, CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.judge import say
from proveout.judge.expressions import Data, Outcome, check_all


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``expressions``: the checks, at least one. ``boundary``: the one at fault where one of them does not hold."""

    expressions: tuple[str, ...]
    boundary: Boundary | None = None

    def __post_init__(self) -> None:
        if not self.expressions:
            raise ValueError("expressions: at least one check is needed")


def checks(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every metric expression holds; one that could not have failed limits the claim, all of them decide."""
    wanted = msgspec.convert(dict(params), Params)
    outcomes = check_all(Data(evidence.metrics), wanted.expressions, evidence.config)
    findings = [finding for outcome in outcomes for finding in _findings(outcome, evidence, wanted.boundary)]
    if all(outcome.vacuous for outcome in outcomes):
        findings.append(
            say.error(
                "checks.none-can-fail",
                f"none of the {len(outcomes)} checks could have failed: they show nothing",
                where=Where(key="criteria.checks.expressions"),
                remedy="add a check that a broken run fails",
            )
        )
    held = tuple(_held(outcome, evidence) for outcome in outcomes if outcome.passed and not outcome.vacuous)
    rows = tuple(row(outcome) for outcome in outcomes)
    return CriterionResult(kind="checks", findings=tuple(findings), held=held, checks=rows)


def row(outcome: Outcome) -> CheckRow:
    """The outcome as one row of the check table."""
    words = [outcome.message] if outcome.message else []
    words += [f"cannot fail: {outcome.vacuous}"] if outcome.vacuous else []
    words += outcome.notes
    return CheckRow(check=outcome.check, passed=outcome.passed, value=outcome.value, message="; ".join(words))


def _findings(outcome: Outcome, evidence: Evidence, boundary: Boundary | None) -> Iterator[Finding]:
    cites = tuple(_cite(outcome, tag, evidence) for tag in outcome.series) or (
        Citation(what="the check as given", text=outcome.check),
    )
    if not outcome.passed:
        kind = "refused" if outcome.refused else "non-finite" if outcome.non_finite else "failed"
        yield say.error(
            f"checks.{kind}",
            f"{outcome.check}: {outcome.message}, value {outcome.value}",
            evidence=cites,
            boundary=Boundary.NUMERICS if outcome.non_finite else boundary,
            remedy="a check that fails after the steps ran is a failure of the change, not of the harness",
        )
    if outcome.vacuous:
        yield say.warning(
            "checks.cannot-fail",
            f"{outcome.check} cannot fail: {outcome.vacuous}",
            evidence=cites,
            remedy="it shows nothing; check a quantity that a broken run changes",
        )


def _cite(outcome: Outcome, tag: str, evidence: Evidence) -> Citation:
    series = evidence.metrics.series[tag]
    steps = outcome.offending.get(tag, ())
    at = steps[0] if steps else (series.steps[-1] if len(series) else None)
    return Citation(
        what=outcome.check,
        where=Where(file=series.source or None, metric=tag, step=at),
        text=f"value {outcome.value}, {len(series)} steps",
    )


def _held(outcome: Outcome, evidence: Evidence) -> Citation:
    if outcome.series:
        return _cite(outcome, outcome.series[0], evidence)
    return Citation(what=outcome.check, text=f"value {outcome.value}")
