"""Finite: no NaN and no infinity in any series of the attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Where
from proveout.judge import say
from proveout.judge.cadence import is_padding
from proveout.judge.machine import is_machine


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``measurements``: further globs of series that time or count the machine, where NaN only warns."""

    measurements: tuple[str, ...] = ()


def finite(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """NaN or inf fails, naming the steps; the series in which it stands first come first.

    Two things only warn: series that measure the machine (utilisation, timing), and NaN that stands only
    between two evaluations of an evaluation series.
    """
    wanted = msgspec.convert(dict(params), Params)
    wrong = {
        tag: bad
        for tag in evidence.metrics.tags()
        if (bad := evidence.metrics.series[tag].non_finite_steps())
    }
    clean = len(evidence.metrics.series) - len(wrong)
    findings = []
    for tag, bad in sorted(wrong.items(), key=lambda item: item[1][0]):
        series = evidence.metrics.series[tag]
        what = f"{tag} is not finite at {say.steps_text(bad)} (of {len(series)})"
        cites = tuple(say.point(tag, series, step, "not a finite number") for step in bad[:3])
        if is_padding(tag, series):
            findings.append(say.notice("finite.padding", f"{what}: only between evaluations", evidence=cites))
        elif is_machine(tag, wanted.measurements):
            findings.append(say.warning("finite.measurement", what, evidence=cites))
        else:
            findings.append(
                say.error(
                    "finite.non-finite",
                    what,
                    evidence=cites,
                    boundary=Boundary.NUMERICS,
                    remedy="look at the first such step: learning rate, loss scale, reward, advantages",
                )
            )
    held = (Citation(what=f"{clean} series are finite at every step", where=Where(file=evidence.log)),)
    return CriterionResult(kind="finite", findings=tuple(findings), held=held if clean else ())
