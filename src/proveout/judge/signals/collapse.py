"""Signs that the policy has nothing left to explore or to compare."""

from __future__ import annotations

import statistics

from proveout.domain.finding import Boundary
from proveout.domain.metrics import Series
from proveout.judge import say
from proveout.judge.signals.trends import improved
from proveout.judge.signals.view import Said, View


def groups(view: View) -> Said:
    """Most groups of answers hold different rewards, so that advantages are not zero."""
    shares = _shares(view)
    if not shares:
        return Said()
    findings, held = [], []
    for tag, (series, by_step) in shares.items():
        mean = statistics.mean(by_step.values())
        full = [step for step, share in by_step.items() if share >= 1.0]
        all_of = f"all of them at {len(full)} of {len(by_step)} steps"
        what = f"{tag}: {mean:.0%} of the groups have no spread of reward ({all_of})"
        cites = tuple(say.point(tag, series, step, "every group is degenerate") for step in full[:3])
        cites = cites or (say.point(tag, series, series.steps[-1], "degenerate groups"),)
        if mean >= view.threshold("degenerate_share_error"):
            findings.append(
                say.error(
                    "learning_signal.degenerate-groups",
                    what,
                    evidence=cites,
                    boundary=Boundary.TRAINER,
                    remedy="other prompts, more answers a prompt, or a reward that tells answers apart",
                )
            )
        elif mean >= view.threshold("degenerate_share_warning"):
            findings.append(say.warning("learning_signal.degenerate-groups", what, evidence=cites))
        else:
            held.append(
                say.point(tag, series, series.steps[-1], f"{1 - mean:.0%} of the groups have a spread")
            )
    return Said(tuple(findings), tuple(held))


def _shares(view: View) -> dict[str, tuple[Series, dict[int, float]]]:
    shares = {tag: (s, s.as_dict()) for tag, s in view.role("degenerate_share").items()}
    for tag, series in view.role("mixed_percent").items():
        shares[tag] = (series, {step: 1 - value / 100 for step, value in series})
    highs, lows = view.role("advantage_max"), view.role("advantage_min")
    for (high, above), below in zip(highs.items(), lows.values(), strict=False):
        floor = below.as_dict()
        flat = {step: float(value == 0.0 == floor[step]) for step, value in above if step in floor}
        if flat and not shares:
            shares[high] = (above, flat)
    return shares


def entropy(view: View) -> Said:
    """The policy's entropy does not collapse without the reward gaining by it."""
    findings, held = [], []
    for tag, series in view.role("entropy").items():
        if len(series) < 5:
            continue
        width = max(1, len(series) // 5)
        start, end = statistics.median(series.values[:width]), statistics.median(series.values[-width:])
        if start <= 0:
            continue
        share = end / start
        what = f"{tag} falls from {start:.4g} to {end:.4g} ({share:.1%} of its start)"
        cite = (say.point(tag, series, series.steps[-1], "the entropy at the end"),)
        if share >= view.threshold("entropy_share_warning"):
            held.append(
                say.point(
                    tag, series, series.steps[-1], f"{tag}: {start:.4g} at the start, {end:.4g} at the end"
                )
            )
        elif share < view.threshold("entropy_share_error") and not improved(view, "reward"):
            findings.append(
                say.error(
                    "learning_signal.entropy-collapse",
                    f"{what} and the reward gains nothing by it",
                    evidence=cite,
                    boundary=Boundary.TRAINER,
                )
            )
        else:
            findings.append(say.warning("learning_signal.entropy-collapse", what, evidence=cite))
    return Said(tuple(findings), tuple(held))
