"""What shows that a run resumed, and that it went on as an uninterrupted one did."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from proveout.domain.evidence import Evidence
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


@cache
def signs() -> dict[str, Signs]:
    """Signs of a resume by loop."""
    text = files("proveout.judge").joinpath("data/resume.toml").read_text()
    return msgspec.convert(tomllib.loads(text), dict[str, Signs])


def proof(evidence: Evidence, known: Signs, after: int) -> Iterator[Finding | Citation]:
    """Lines of the log that the loop prints when it resumes from step ``after``, and none of a fresh start."""
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


def continuity(loop: str, table: MetricTable, after: int) -> Iterator[Finding | Citation]:
    """The first step recorded is the one after ``after``."""
    followed = {
        t: s for r in ("loss", "grad_norm", "reward") for t, s in roles.playing(r, loop, table).items()
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


def parity(
    ours: MetricTable, theirs: MetricTable, series: Mapping[str, Tolerance], after: int
) -> Iterator[Finding | Citation]:
    """The steps beyond ``after`` agree with the uninterrupted run within tolerance."""
    compared = 0
    for tag, tolerance in series.items():
        if tag not in ours.series or tag not in theirs.series:
            side = "the resumed run" if tag not in ours.series else "the uninterrupted run"
            yield say.error("resume_parity.missing", f"{tag} is not in {side}", where=Where(metric=tag))
            continue
        found = compare_series(
            tag, beyond(ours.series[tag], after), beyond(theirs.series[tag], after), tolerance
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


def beyond(series: Series, after: int) -> Series:
    """The points of ``series`` after step ``after``."""
    return Series.of({step: value for step, value in series if step > after}, series.source)


def gradients(loop: str, table: MetricTable, after: int) -> Iterator[Finding]:
    """Some gradient after the resume is above 0."""
    for tag, series in roles.playing("grad_norm", loop, table).items():
        later = beyond(series, after)
        if len(later) and not any(later.values):
            cite = say.point(tag, series, series.steps[-1], "no gradient")
            finding = say.error(
                "resume_parity.zero-gradient",
                f"{tag} is 0 at every compared step: parity on updates that change nothing shows nothing",
                evidence=(cite,),
            )
            yield finding
