"""Completion: the planned last step stands in the metrics of this attempt, and nothing stopped it early."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.domain.metrics import Series
from proveout.judge import logtext, roles, say
from proveout.judge.cadence import EVALUATION

_CLOCK_SLACK = 2.0
_CORE = ("loss", "grad_norm", "reward")
_AWAY = ("ray/", "timing/setup", *EVALUATION)
_TIMEOUT = "Timeout has been reached"
_BAR = re.compile(r"([^|\]\r]*?):?\s*100%\|[^|\]]*\|\s*(\d+)/(\d+)\s*\[00:00<\?")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``planned_steps`` in place of the step's own; ``series``: tags that must reach it besides the usual."""

    planned_steps: int | None = None
    series: tuple[str, ...] = ()


def completion(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The planned last step was reached here, by every series that follows the training.

    Fails on: no metrics; a series that stops short, or is of a run longer than the plan; records older than
    the attempt; the loop's own timeout; a progress bar that was full when it was first drawn (a resume that
    had nothing left to do).
    """
    wanted = msgspec.convert(dict(params), Params)
    planned = wanted.planned_steps if wanted.planned_steps is not None else evidence.step.planned_steps
    findings = list(_log_signs(evidence, planned))
    if planned is None:
        held = (Citation(what="the step plans no training step", where=Where(key="planned_steps")),)
        return CriterionResult(kind="completion", findings=tuple(findings), held=() if findings else held)
    followed = _followed(evidence)
    held_points: list[Citation] = []
    for tag in wanted.series:
        series = evidence.metrics.get(tag)
        if series is None or not len(series):
            findings.append(
                say.error("completion.missing", f"{tag} is not in the metrics", where=Where(metric=tag))
            )
        else:
            followed[tag] = series
    if not followed:
        left = f"; left out: {', '.join(evidence.metrics.left_out[:3])}" if evidence.metrics.left_out else ""
        findings.append(
            say.error(
                "completion.no-metrics",
                f"step {planned} was planned and the attempt left no training metric{left}",
                where=Where(file=evidence.log),
                boundary=Boundary.INCOMPLETE,
            )
        )
    for tag, series in followed.items():
        wrong = _short(tag, series, planned) or _stale(tag, series, evidence)
        if wrong is not None:
            findings.append(wrong)
        else:
            held_points.append(say.point(tag, series, planned, f"the planned last step {planned} is reached"))
    return CriterionResult(kind="completion", findings=tuple(findings), held=tuple(held_points))


def _followed(evidence: Evidence) -> dict[str, Series]:
    loop, table = evidence.step.coverage.loop, evidence.metrics
    found = {tag: s for role in _CORE for tag, s in roles.playing(role, loop, table).items()}
    if found:
        return found
    rest = {t: s for t, s in table.series.items() if len(s) and not t.startswith(_AWAY)}
    furthest = max((s.steps[-1] for s in rest.values()), default=0)
    return {tag: s for tag, s in rest.items() if s.steps[-1] == furthest}


def _short(tag: str, series: Series, planned: int) -> Finding | None:
    last = series.steps[-1]
    cite = (say.point(tag, series, last, "its last record"),)
    if last < planned:
        return say.error(
            "completion.short",
            f"{tag} ends at step {last}, step {planned} was planned",
            evidence=cite,
            boundary=Boundary.INCOMPLETE,
            remedy="an exit status of 0 does not show that the work was done; see the end of the log",
        )
    if last > planned:
        return say.error(
            "completion.beyond",
            f"{tag} reaches step {last}, beyond the planned step {planned}",
            evidence=cite,
            remedy="these are another run's records, or an override changed the number of steps",
        )
    if planned not in series.as_dict():
        return say.error("completion.short", f"{tag} has no record at step {planned}", evidence=cite)
    return None


def _stale(tag: str, series: Series, evidence: Evidence) -> Finding | None:
    started, skew = evidence.exit.started, evidence.exit.skew
    wall, modified = series.wall[-1] - skew, _modified(series, evidence)
    written, how = (wall, "recorded") if math.isfinite(wall) else (modified, "written")
    if abs(skew) > _CLOCK_SLACK and modified is not None and modified < started:
        written, how = modified, "written"
    if written is None or started <= 0 or written >= started - _CLOCK_SLACK:
        return None
    last = series.steps[-1]
    return say.error(
        "completion.stale",
        f"{tag} at step {last} was {how} {started - written:.1f} s before this attempt started",
        evidence=(say.point(tag, series, last, "a record of an earlier attempt"),),
        remedy="metrics of an earlier attempt lie in this attempt's place; remove them and run again",
    )


def _modified(series: Series, evidence: Evidence) -> float | None:
    if not series.source:
        return None
    try:
        return (Path(evidence.attempt_dir) / series.source).stat().st_mtime
    except OSError:
        return None


def _log_signs(evidence: Evidence, planned: int | None) -> Iterator[Finding]:
    try:
        for line in logtext.scan(logtext.log_path(evidence), (_TIMEOUT, "[00:00<?")):
            if _TIMEOUT in line.text:
                yield say.error(
                    "completion.timeout",
                    "the loop stopped itself at its time limit and still ended with status 0",
                    evidence=(say.log_line(evidence.log, line.number, line.text, "the loop's own timeout"),),
                    boundary=Boundary.INCOMPLETE,
                    remedy="raise the loop's time limit or plan fewer steps",
                )
            for name, done, total in _BAR.findall(line.text):
                ours = "Training Progress" in name or (not name.strip() and int(total) == planned)
                if ours and done == total:
                    yield say.error(
                        "completion.nothing-left",
                        f"the training bar was full when first drawn ({done}/{total}): nothing was trained",
                        evidence=(say.log_line(evidence.log, line.number, line.text, "no step was run"),),
                        boundary=Boundary.INCOMPLETE,
                        remedy="the run resumed at or after its last step; use a fresh checkpoint directory",
                    )
    except OSError:
        return
