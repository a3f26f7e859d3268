"""Artifacts: every declared file exists, is newer than the attempt's start and is large enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import ArtifactState, CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.domain.step import Artifact
from proveout.judge import say


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters: what is expected is what the step declares."""


def artifacts(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every artifact that the step declares was looked for, and what was found belongs to this attempt."""
    msgspec.convert(dict(params), Params)
    findings = list(_not_looked_for(evidence))
    held = []
    for state in evidence.artifacts:
        wrong = _wrong(state, evidence.exit.started)
        if wrong is None:
            held.append(_cite(state, f"{state.what}: written by this attempt"))
        else:
            findings.append(wrong)
    if not findings and not held:
        held.append(Citation(what="the step declares no artifact", where=Where(key="artifacts")))
    return CriterionResult(kind="artifacts", findings=tuple(findings), held=tuple(held))


def _wrong(state: ArtifactState, started: float) -> Finding | None:
    where = Where(file=state.path)
    if not state.exists:
        return say.error(
            "artifacts.missing",
            f"{state.what} is missing: {state.path}",
            where=where,
            boundary=Boundary.INCOMPLETE,
            remedy="find in the log why it was not written",
        )
    if started <= 0:
        return say.error(
            "artifacts.no-start",
            f"{state.what} cannot be shown to be new: the attempt's start time is not known",
            where=where,
        )
    if state.modified < started:
        return say.error(
            "artifacts.stale",
            f"{state.what} is {started - state.modified:.1f} s older than the attempt: {state.path}",
            where=where,
            evidence=(_cite(state, "left by something else than this attempt"),),
            remedy="it is not this attempt's work; remove it and run again",
        )
    if state.size < state.min_bytes:
        return say.error(
            "artifacts.small",
            f"{state.what} holds {state.size} bytes, {state.min_bytes} are the least: {state.path}",
            where=where,
            evidence=(_cite(state, "cut short or empty"),),
        )
    return None


def _cite(state: ArtifactState, what: str) -> Citation:
    return Citation(
        what=what, where=Where(file=state.path), text=f"{state.size} bytes, modified {state.modified:.3f}"
    )


def _not_looked_for(evidence: Evidence) -> Iterator[Finding]:
    for declared in evidence.step.artifacts:
        if not any(_same(declared, state) for state in evidence.artifacts):
            yield say.error(
                "artifacts.not-examined",
                f"{declared.what} was declared but the evidence says nothing of it: {declared.path}",
                where=Where(file=declared.path),
            )


def _same(declared: Artifact, state: ArtifactState) -> bool:
    return state.what == declared.what or state.path == declared.path
