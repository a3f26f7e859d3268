"""Resume parity: a run that was saved and resumed goes on as the uninterrupted one did, and it did resume.

Equal numbers alone show nothing: a run that silently starts over reproduces its baseline as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.metrics import Series
from proveout.judge import resume, say
from proveout.judge.compare import compare_series
from proveout.judge.criteria.baseline import both
from proveout.judge.tolerance import Tolerance


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``baseline``: id of the step that ran through; ``saved``: id of the step whose checkpoint was resumed.

    They may be the same. Without ``baseline`` no numbers are compared, which limits the claim; the loop must
    then print that it resumed. ``resumed_after`` is the last step before the resume (the last of ``saved``
    where it is not given). ``series`` maps tags to tolerances in place of the loop's own list; each must be
    there.
    """

    baseline: str = ""
    saved: str = ""
    resumed_after: int | None = None
    series: dict[str, Tolerance] = {}

    def __post_init__(self) -> None:
        if not self.baseline and not self.saved:
            raise ValueError("one of baseline and saved is needed")


def resume_parity(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The resumed steps agree with the uninterrupted run, with proof of a resume and gradients above 0."""
    wanted = msgspec.convert(dict(params), Params)
    through = _related(evidence, wanted.baseline, "baseline") if wanted.baseline else None
    saved = _related(evidence, wanted.saved, "saved") if wanted.saved else None
    after = _resumed_after(wanted, saved)
    loop = evidence.step.coverage.loop
    known = resume.signs().get(loop, resume.Signs())
    results = [*resume.proof(evidence, known, after), *resume.continuity(loop, evidence.metrics, after)]
    if through is None:
        results += _uncompared(evidence, known)
    else:
        series = wanted.series or {
            tag: tolerance
            for tag, tolerance in known.series.items()
            if tag in evidence.metrics.series or tag in through.metrics.series
        }
        if not series:
            raise UsageError(
                "no series to compare is known for this loop; name them", where="criteria.resume_parity"
            )
        results += resume.parity(evidence.metrics, through.metrics, series, after)
        results += _before(saved, through, series, after)
    results += resume.gradients(loop, evidence.metrics, after)
    findings = tuple(item for item in results if isinstance(item, Finding))
    held = tuple(item for item in results if isinstance(item, Citation))
    return CriterionResult(kind="resume_parity", findings=findings, held=held)


def _uncompared(evidence: Evidence, known: resume.Signs) -> Iterator[Finding]:
    if not known.proof:
        yield say.error(
            "resume_parity.no-proof",
            "this loop prints no line when it resumes, and there is no uninterrupted run to compare with",
            where=Where(file=evidence.log),
        )
        return
    yield say.warning(
        "resume_parity.uncompared",
        "no uninterrupted run was compared: the log and the step numbers show the resume, not that the "
        "numbers are those of a run that never stopped",
        where=Where(file=evidence.log),
    )


def _related(evidence: Evidence, step: str, name: str) -> Evidence:
    if step not in evidence.related:
        raise UsageError(f"step {step!r} left no evidence", where=f"criteria.resume_parity.{name}")
    return evidence.related[step]


def _resumed_after(wanted: Params, saved: Evidence | None) -> int:
    if wanted.resumed_after is not None:
        return wanted.resumed_after
    last = saved.metrics.last_step() if saved is not None else None
    if last is None:
        raise UsageError(
            "resumed_after or a saved step with metrics is needed", where="criteria.resume_parity"
        )
    return last


def _before(
    saved: Evidence | None, through: Evidence, series: Mapping[str, Tolerance], after: int
) -> Iterator[Finding]:
    if saved is None or saved.step.id == through.step.id:
        return
    for tag, tolerance in series.items():
        ours, theirs = saved.metrics.get(tag), through.metrics.get(tag)
        if ours is None or theirs is None:
            continue
        points = {step: value for step, value in theirs if step <= after}
        found = compare_series(tag, ours, Series.of(points, theirs.source), tolerance)
        if found.offending:
            cite = Citation(
                what="saved against uninterrupted",
                where=Where(metric=tag, step=found.offending[0]),
                text=both(found),
            )
            yield say.error(
                "resume_parity.not-repeatable",
                f"{tag} differs already before the save, at {say.steps_text(list(found.offending))}",
                evidence=(cite,),
                remedy="the loop does not repeat itself: fix seed and sampling, or parity cannot be judged",
            )
