"""Weights moved: the updates were large enough for generation to see them.

Agreement of generation and policy shows nothing about refit while both still hold the first weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.domain.metrics import Series
from proveout.judge import roles, say


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``kl``: the least KL to the reference (nats) that counts as movement where refit reports nothing."""

    kl: float = 1e-6


def weights_moved(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """After the first step refit changed elements, pushed norms changed, or KL to the reference is above 0.

    The strongest of the three that is recorded decides; no record of any of them is an ERROR.
    """
    wanted = msgspec.convert(dict(params), Params)
    loop, table = evidence.step.coverage.loop, evidence.metrics
    for role, least in (("weight_delta", 0.0), ("pushed_norm", None), ("reference_kl", wanted.kl)):
        series = roles.playing(role, loop, table)
        if series:
            found = [_moved(tag, one, least) for tag, one in series.items()]
            held = tuple(item for item in found if isinstance(item, Citation))
            wrong = tuple(item for item in found if isinstance(item, Finding))
            return CriterionResult(
                kind="weights_moved", findings=() if held and role == "reference_kl" else wrong, held=held
            )
    unknown = say.error(
        "weights_moved.unknown",
        "nothing records whether the weights changed: no refit delta, pushed norm or KL to the reference",
        where=Where(file=evidence.log),
        remedy="let the run log one of them; agreement of generation and policy shows nothing without it",
    )
    return CriterionResult(kind="weights_moved", findings=(unknown,))


def _moved(tag: str, series: Series, least: float | None) -> Citation | Finding:
    later = list(series)[1:]
    if not later:
        return say.error(
            "weights_moved.unknown",
            f"{tag} has one record, and movement shows from the second on",
            evidence=(say.point(tag, series, series.steps[-1], "its only value"),),
            boundary=Boundary.TRAINER,
            remedy="train for two steps or more",
        )
    if least is None:
        moved = [step for step, value in later if value != series.values[0]]
        still = f"{tag} is {say.number(series.values[0])} at all of {len(series)} steps"
    else:
        moved = [step for step, value in later if value > least]
        still = f"{tag} is never above {least:g} after its first record ({len(series)} records)"
    if moved:
        return say.point(tag, series, moved[0], f"the weights changed by step {moved[0]}")
    return say.error(
        "weights_moved.still",
        f"{still}: generation and policy agree because nothing moved",
        evidence=(say.point(tag, series, series.steps[-1], "its last value"),),
        boundary=Boundary.TRAINER,
        remedy="raise the learning rate until an update can be seen, or look for what is frozen",
    )
