"""Baseline: the metrics agree with a golden file or with another step's, tag by tag, within tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.metrics import MetricTable
from proveout.judge import metricfile, say
from proveout.judge.compare import TagComparison, compare_tables
from proveout.judge.tolerance import EXACT, Tolerance


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either ``golden`` (a file that ``proveout compare --save-golden`` wrote) or ``related`` (a step's id).

    ``tags`` limits what is compared; ``tolerances`` maps tags or globs to ``rtol`` and ``atol``, ``default``
    applies to the rest. Tolerances given here come before those of the golden file.
    """

    golden: str = ""
    related: str = ""
    tags: tuple[str, ...] = ()
    tolerances: dict[str, Tolerance] = {}
    default: Tolerance = EXACT

    def __post_init__(self) -> None:
        if bool(self.golden) == bool(self.related):
            raise ValueError("one of golden and related is needed")


def baseline(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every judged tag of the baseline is here, with the same steps and values within tolerance."""
    wanted = msgspec.convert(dict(params), Params)
    table, tolerances, name = _other(evidence, wanted)
    ours, theirs = evidence.metrics, table
    if wanted.tags:
        ours, theirs = _only(ours, wanted.tags), _only(theirs, wanted.tags)
        if absent := [tag for tag in wanted.tags if tag not in theirs.series]:
            raise UsageError(f"the baseline {name} holds no {absent[0]}", where="criteria.baseline.tags")
    found = compare_tables(ours, theirs, tolerances | wanted.tolerances, wanted.default)
    findings = [_differs(tag, name) for tag in found.failing]
    findings += [
        say.error("baseline.missing", f"{tag} of {name} is not in this run", where=Where(metric=tag))
        for tag in found.only_baseline
    ]
    if not any(tag.judged for tag in found.tags):
        findings.append(say.error("baseline.nothing-common", f"no tag in common with {name}"))
    held = tuple(_held(tag, name) for tag in found.tags if tag.judged and tag.ok)
    return CriterionResult(kind="baseline", findings=tuple(findings), held=held)


def _other(evidence: Evidence, wanted: Params) -> tuple[MetricTable, dict[str, Tolerance], str]:
    if wanted.golden:
        file = metricfile.load(Path(evidence.attempt_dir) / wanted.golden)
        return file.table, file.tolerances, Path(wanted.golden).name
    if wanted.related not in evidence.related:
        raise UsageError(f"step {wanted.related!r} left no evidence", where="criteria.baseline.related")
    return evidence.related[wanted.related].metrics, {}, wanted.related


def _only(table: MetricTable, tags: tuple[str, ...]) -> MetricTable:
    return MetricTable({tag: table.series[tag] for tag in tags if tag in table.series})


def both(tag: TagComparison, most: int = 6) -> str:
    """Both series side by side at the offending steps first, every digit."""
    values = dict(zip(tag.steps, zip(tag.values, tag.baseline, strict=True), strict=True))
    chosen = [*tag.offending, *(step for step in tag.steps if step not in tag.offending)][:most]
    return "; ".join(f"step {s}: {values[s][0]!r} against {values[s][1]!r}" for s in sorted(chosen))


def _differs(tag: TagComparison, name: str) -> Finding:
    words = []
    if tag.offending:
        words.append(f"differs at {say.steps_text(list(tag.offending))}")
        words.append(f"largest error {tag.max_abs:.6g} (step {tag.max_abs_step})")
        words.append(f"relative {tag.max_rel:.3g} (step {tag.max_rel_step}), allowed {tag.tolerance}")
    if tag.only_run:
        words.append(f"{name} lacks {say.steps_text(list(tag.only_run))}")
    if tag.only_baseline:
        words.append(f"this run lacks {say.steps_text(list(tag.only_baseline))}")
    step = tag.offending[0] if tag.offending else (tag.only_baseline or tag.only_run or (None,))[0]
    cite = Citation(what=f"this run against {name}", where=Where(metric=tag.tag, step=step), text=both(tag))
    return say.error("baseline.differs", f"{tag.tag}: {', '.join(words)}", evidence=(cite,))


def _held(tag: TagComparison, name: str) -> Citation:
    return Citation(
        what=f"{tag.tag} agrees with {name} at {len(tag.steps)} steps ({tag.tolerance})",
        where=Where(metric=tag.tag, step=tag.steps[-1]),
        text=f"largest error {tag.max_abs:.6g}, relative {tag.max_rel:.3g}; {both(tag, 2)}",
    )
