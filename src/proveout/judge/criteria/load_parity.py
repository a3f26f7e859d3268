"""Load parity: the policy computes what the original checkpoint computes, at load and after its export.

Generation and policy agree on weights that were imported wrongly, so no other criterion sees such a fault.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.judge import logtext, say

SERIES = {"load": "parity/load_max_logit_diff", "export": "parity/export_max_logit_diff"}
SCALES = {"load": "parity/load_logit_scale", "export": "parity/export_logit_scale"}
WORDS = "Parity at load: weight "
SHOWN = 5


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rtol``: the largest logit difference allowed, as a share of the largest logit of the original.

    ``export`` demands the comparison with the re-imported export too; a recorded one is judged in any case.
    """

    rtol: float = 1e-4
    export: bool = False


def load_parity(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The largest logit difference is within ``rtol`` of the largest logit; a comparison not made is an ERROR."""
    wanted = msgspec.convert(dict(params), Params)
    findings, held = [], []
    for when, tag in SERIES.items():
        series = evidence.metrics.get(tag)
        if series is None or not len(series):
            if when == "load" or wanted.export:
                findings.append(_missing(when, tag, evidence))
            continue
        scale = evidence.metrics.get(SCALES[when])
        largest = scale.values[-1] if scale is not None and len(scale) else 1.0
        limit = wanted.rtol * largest
        for step, value in series:
            if math.isfinite(value) and value <= limit:
                what = f"at {when} no logit differs from the original's by more than {limit:.3g}"
                held.append(say.point(tag, series, step, what))
            else:
                cite = say.point(
                    tag, series, step, f"the limit is {limit:.3g} ({wanted.rtol:g} of the largest logit)"
                )
                findings.append(_apart(when, value, cite, evidence))
    return CriterionResult(kind="load_parity", findings=tuple(findings), held=tuple(held))


def _missing(when: str, tag: str, evidence: Evidence) -> Finding:
    return say.error(
        "load_parity.missing",
        f"{tag} is not in the metrics: the policy was not compared with the original model at {when}",
        where=Where(file=evidence.log, metric=tag),
        boundary=Boundary.PROVIDER,
        remedy="let the run compare logits; agreement of generation and policy cannot show a wrong import",
    )


def _apart(when: str, value: float, cite: Citation, evidence: Evidence) -> Finding:
    if when == "export":
        return say.error(
            "load_parity.export-differs",
            f"the exported model's logits differ from the policy's by {value:.3g}",
            evidence=(cite,),
            boundary=Boundary.PROVIDER,
            remedy="look at the export of the mapping: what was trained is not what was written",
        )
    named = _weights(evidence)
    first = f"; first weight that differs: {named[0].text.partition(WORDS)[2]}" if named else ""
    whose = "" if named else "; all weights are equal, so look at the configuration of the model"
    return say.error(
        "load_parity.load-differs",
        f"the policy's logits differ from the original model's by {value:.3g} at load{first}{whose}",
        evidence=(cite, *named),
        boundary=Boundary.PROVIDER,
        remedy="look at the import: the mapping of the named weight, or a setting of the provider",
    )


def _weights(evidence: Evidence) -> tuple[Citation, ...]:
    try:
        lines = logtext.scan(logtext.log_path(evidence), (WORDS,))
        return tuple(
            say.log_line(evidence.log, line.number, line.text, "a weight that is not the original's")
            for line, _ in zip(lines, range(SHOWN), strict=False)
        )
    except OSError:
        return ()
