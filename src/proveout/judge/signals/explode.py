"""Signs that updates are unstable: limits that no healthy run passes, growth that lasts, single spikes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from proveout.domain.finding import Boundary, Finding
from proveout.domain.metrics import Series
from proveout.judge import say
from proveout.judge.signals.view import Said, View

_LIMITS: dict[str, tuple[str, str, Callable[[float], float]]] = {
    "kl": ("kl_limit", "the policy left its reference", abs),
    "grad_norm": ("grad_norm_limit", "the gradient exploded", abs),
    "mismatch": ("mismatch_error", "generation and policy disagree", abs),
    "prob_error": ("prob_error_error", "generation and policy disagree", abs),
    "ratio": (
        "ratio_limit",
        "probability ratios are far from 1",
        lambda v: max(v, 1 / v) if v > 0 else abs(v),
    ),
}
_WARNINGS = {"mismatch": "mismatch_warning", "prob_error": "prob_error_warning"}
_GROWTH = {"grad_norm": "grad_norm_floor", "kl": "kl_floor"}


def limits(view: View) -> Said:
    """No value of KL, gradient norm, ratio or mismatch beyond its limit, at any step."""
    findings, held = [], []
    for role, (name, why, size) in _LIMITS.items():
        limit = view.threshold(name)
        for tag, series in view.role(role).items():
            sizes = {step: size(value) for step, value in series}
            worst = max(sizes, key=lambda step: sizes[step])
            over = [step for step, value in sizes.items() if value > limit]
            softer = view.threshold(_WARNINGS[role]) if role in _WARNINGS else limit
            cite = (say.point(tag, series, worst, "its largest value"),)
            if over:
                what = f"{tag} is beyond {limit:g} at {say.steps_text(over)}: {why}"
                findings.append(
                    say.error(f"learning_signal.{role}", what, evidence=cite, boundary=_boundary(role))
                )
            elif sizes[worst] > softer:
                what = f"{tag} reaches {say.number(series.as_dict()[worst])} at step {worst}: {why}"
                findings.append(say.warning(f"learning_signal.{role}", what, evidence=cite))
            else:
                held.append(say.point(tag, series, worst, f"{tag} stays within {limit:g}"))
    return Said(tuple(findings), tuple(held))


def _boundary(role: str) -> Boundary:
    return Boundary.GENERATION if role in ("mismatch", "prob_error") else Boundary.NUMERICS


def growth(view: View) -> Said:
    """No gradient norm or KL that ends far above its own level; a single material spike only warns."""
    findings = []
    for role, floor in _GROWTH.items():
        for tag, series in view.role(role).items():
            if len(series) >= 5:
                found = _grown(view, tag, series, view.threshold(floor)) or _spiked(
                    view, tag, series, view.threshold(floor)
                )
                findings += [found] if found else []
    return Said(tuple(findings))


def _grown(view: View, tag: str, series: Series, floor: float) -> Finding | None:
    width = max(2, len(series) // 5)
    before, end = statistics.median(series.values[:-width]), statistics.median(series.values[-width:])
    if end <= floor or end <= view.threshold("growth_factor") * abs(before):
        return None
    return say.error(
        "learning_signal.growth",
        f"{tag} ends at {end:.4g} after a level of {before:.4g}",
        evidence=(say.point(tag, series, series.steps[-1], "its last value"),),
        boundary=Boundary.NUMERICS,
        remedy="lower the learning rate; look at loss scale and clipping",
    )


def _spiked(view: View, tag: str, series: Series, floor: float) -> Finding | None:
    middle = statistics.median(series.values)
    mad = 1.4826 * statistics.median(abs(value - middle) for value in series.values)
    far = [
        step
        for step, value in series
        if value > floor
        and value > view.threshold("spike_factor") * abs(middle)
        and value - middle > view.threshold("spike_mads") * mad
    ]
    if not far:
        return None
    cites = tuple(say.point(tag, series, step, "a spike") for step in far[:3])
    what = f"{tag} spikes at {say.steps_text(far)} above a level of {middle:.4g}"
    return say.warning("learning_signal.spike", what, evidence=cites)
