"""Resume parity: a run that was saved and resumed goes on as the uninterrupted one did, and it did resume.

Equal numbers alone show nothing: a run that silently starts over reproduces its baseline as well.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.domain.metrics import MetricTable, Series
from proveout.judge import logtext, roles, say
from proveout.judge.compare import compare_series
from proveout.judge.criteria.baseline import both
from proveout.judge.tolerance import Tolerance


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A log line: a literal that finds it, the pattern that decides, what it shows."""

    words: str
    pattern: str
    what: str


class Signs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one loop shows a resume; see ``data/resume.toml``."""

    series: dict[str, Tolerance] = {}
    proof: tuple[Line, ...] = ()
    optimizer: tuple[Line, ...] = ()
    fresh: tuple[Line, ...] = ()


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``baseline``: id of the step that ran through; ``saved``: id of the step whose checkpoint was resumed.

    They may be the same. ``resumed_after`` is the last step before the resume (the last of ``saved`` where it
    is not given). ``series`` maps tags to tolerances in place of the loop's own list; each must be there.
    """

    baseline: str
    saved: str = ""
    resumed_after: int | None = None
    series: dict[str, Tolerance] = {}


@cache
def signs() -> dict[str, Signs]:
    """Signs of a resume by loop."""
    text = files("proveout.judge").joinpath("data/resume.toml").read_text()
    return msgspec.convert(tomllib.loads(text), dict[str, Signs])


def resume_parity(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The resumed steps agree with the uninterrupted run, with proof of a resume and gradients above 0."""
    wanted = msgspec.convert(dict(params), Params)
    through = _related(evidence, wanted.baseline, "baseline")
    saved = _related(evidence, wanted.saved, "saved") if wanted.saved else None
    after = _resumed_after(wanted, saved)
    known = signs().get(evidence.step.coverage.loop, Signs())
    series = wanted.series or {
        tag: tolerance
        for tag, tolerance in known.series.items()
        if tag in evidence.metrics.series or tag in through.metrics.series
    }
    if not series:
        raise UsageError(
            "no series to compare is known for this loop; name them", where="criteria.resume_parity"
        )
    results = [
        *_proof(evidence, known, after),
        *_continuity(evidence, after),
        *_parity(evidence.metrics, through.metrics, series, after),
        *_before(saved, through, series, after),
        *_gradients(evidence, after),
    ]
    findings = tuple(item for item in results if isinstance(item, Finding))
    held = tuple(item for item in results if isinstance(item, Citation))
    return CriterionResult(kind="resume_parity", findings=findings, held=held)


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


def _proof(evidence: Evidence, known: Signs, after: int) -> Iterator[Finding | Citation]:
    lines = (*known.proof, *known.optimizer, *known.fresh)
    found: dict[Line, list[tuple[Citation, int | None]]] = {line: [] for line in lines}
    try:
        for text in logtext.scan(logtext.log_path(evidence), {line.words for line in lines}):
            for line in lines:
                match = re.search(line.pattern, text.text)
                if match:
                    step = match.groupdict().get("step")
                    cite = say.log_line(evidence.log, text.number, text.text, line.what)
                    found[line].append((cite, int(step) if step else None))
    except OSError as error:
        yield say.error(
            "resume_parity.no-log",
            f"the log cannot be read: {error.strerror}",
            where=Where(file=evidence.log),
        )
        return
    for line in known.fresh:
        for cite, _ in found[line][:1]:
            yield say.error(
                "resume_parity.started-over", line.what, evidence=(cite,), boundary=Boundary.TRAINER
            )
    for line in (*known.proof, *known.optimizer):
        right = [cite for cite, step in found[line] if step in (None, after)]
        other = [(cite, step) for cite, step in found[line] if step not in (None, after)]
        if right:
            yield right[0]
        elif other:
            what = f"the log shows a resume from step {other[0][1]}, not from step {after}"
            yield say.error("resume_parity.other-step", what, evidence=(other[0][0],))
        else:
            yield say.error(
                "resume_parity.no-proof",
                f"no line of the log shows this: {line.what}",
                where=Where(file=evidence.log),
                boundary=Boundary.TRAINER,
                remedy="equal numbers do not show a resume: a run that starts over has them too",
            )
    if not known.proof:
        yield say.notice(
            "resume_parity.silent", "this loop prints no line when it resumes", where=Where(file=evidence.log)
        )


def _continuity(evidence: Evidence, after: int) -> Iterator[Finding | Citation]:
    loop = evidence.step.coverage.loop
    followed = {
        t: s
        for r in ("loss", "grad_norm", "reward")
        for t, s in roles.playing(r, loop, evidence.metrics).items()
    }
    if not followed:
        yield say.error(
            "resume_parity.no-series", "no loss, gradient norm or reward shows where the run began"
        )
    for tag, series in followed.items():
        first = series.steps[0]
        cite = say.point(tag, series, first, "its first record")
        if first <= after:
            what = f"{tag} begins at step {first}: steps that were saved (up to {after}) were run again"
            yield say.error("resume_parity.started-over", what, evidence=(cite,), boundary=Boundary.TRAINER)
        elif first > after + 1:
            what = f"{tag} begins at step {first}, step {after + 1} was to be next"
            yield say.error("resume_parity.gap", what, evidence=(cite,))
        else:
            yield say.point(tag, series, first, f"the first step is {first}, next to the saved step {after}")


def _parity(
    ours: MetricTable, theirs: MetricTable, series: Mapping[str, Tolerance], after: int
) -> Iterator[Finding | Citation]:
    compared = 0
    for tag, tolerance in series.items():
        if tag not in ours.series or tag not in theirs.series:
            side = "the resumed run" if tag not in ours.series else "the uninterrupted run"
            yield say.error("resume_parity.missing", f"{tag} is not in {side}", where=Where(metric=tag))
            continue
        found = compare_series(
            tag, _beyond(ours.series[tag], after), _beyond(theirs.series[tag], after), tolerance
        )
        compared = max(compared, len(found.steps))
        step = (*found.offending, *found.only_baseline, *found.only_run, *found.steps, None)[0]
        cite = Citation(
            what="resumed against uninterrupted", where=Where(metric=tag, step=step), text=both(found)
        )
        if found.ok:
            yield cite
            continue
        missing = [*found.only_baseline, *found.only_run]
        what = (
            f"{tag} differs at {say.steps_text(list(found.offending))}"
            if found.offending
            else f"{tag} differs"
        )
        what += f"; only one run holds {say.steps_text(missing)}" if missing else ""
        what += (
            f" (relative {found.max_rel:.3g}, allowed {tolerance})" if found.steps else "; no step in common"
        )
        yield say.error("resume_parity.differs", what, evidence=(cite,), boundary=Boundary.TRAINER)
    if compared == 1:
        yield say.warning(
            "resume_parity.one-step",
            "one step was compared: its loss and gradient come before the restored optimizer is used",
            remedy="run two steps after the resume, so that a lost optimizer state shows",
        )


def _beyond(series: Series, after: int) -> Series:
    return Series.of({step: value for step, value in series if step > after}, series.source)


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


def _gradients(evidence: Evidence, after: int) -> Iterator[Finding]:
    for tag, series in roles.playing("grad_norm", evidence.step.coverage.loop, evidence.metrics).items():
        later = _beyond(series, after)
        if len(later) and not any(later.values):
            cite = say.point(tag, series, series.steps[-1], "no gradient")
            finding = say.error(
                "resume_parity.zero-gradient",
                f"{tag} is 0 at every compared step: parity on updates that change nothing shows nothing",
                evidence=(cite,),
            )
            yield finding
