"""Resume in one attempt: a script that saves, resumes and runs through itself, and leaves a metrics file of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding
from proveout.domain.metrics import MetricTable
from proveout.judge import resume, say
from proveout.judge.metricfile import load
from proveout.judge.tolerance import Tolerance


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metrics files (as the loop's dump writes them), relative to the attempt directory unless absolute.

    ``saved`` is the run that stopped after step ``resumed_after``, ``resumed`` the one that went on (its file
    may hold the saved steps as well), ``baseline`` the one that never stopped. ``series`` maps tags to
    tolerances; each must be there.
    """

    saved: str
    resumed: str
    baseline: str
    resumed_after: int
    series: dict[str, Tolerance]

    def __post_init__(self) -> None:
        if not self.series:
            raise ValueError("series: at least one is needed")


def resume_files(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The run that stopped did stop, the resumed one agrees with the uninterrupted one, and the log shows it."""
    wanted = msgspec.convert(dict(params), Params)
    saved, resumed, baseline = (
        _table(evidence, path) for path in (wanted.saved, wanted.resumed, wanted.baseline)
    )
    after, loop = wanted.resumed_after, evidence.step.coverage.loop
    results: list[Finding | Citation] = [
        *resume.proof(evidence, resume.signs().get(loop, resume.Signs()), after),
        *resume.parity(resumed, baseline, wanted.series, after),
        *resume.gradients(loop, resumed, after),
        _stopped(saved, wanted),
    ]
    findings = tuple(item for item in results if isinstance(item, Finding))
    held = tuple(item for item in results if isinstance(item, Citation))
    return CriterionResult(kind="resume_files", findings=findings, held=held)


def _table(evidence: Evidence, path: str) -> MetricTable:
    return load(Path(evidence.attempt_dir) / path).table


def _stopped(saved: MetricTable, wanted: Params) -> Finding | Citation:
    ends = {tag: saved.series[tag].steps[-1] for tag in wanted.series if len(saved.series.get(tag, ()))}
    tag = max(ends, key=lambda name: ends[name], default="")
    if not tag:
        return say.error("resume_files.nothing-saved", f"{wanted.saved} holds none of the series compared")
    cite = say.point(tag, saved.series[tag], ends[tag], "the last step before the resume")
    if ends[tag] == wanted.resumed_after:
        return cite
    return say.error(
        "resume_files.not-stopped",
        f"the run that was to stop after step {wanted.resumed_after} ends at step {ends[tag]}: "
        "what followed it resumed nothing",
        evidence=(cite,),
        boundary=Boundary.TRAINER,
    )
