"""Learning signal: the run really learned something, and its updates were sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Finding, Where
from proveout.judge import say
from proveout.judge.signals import collapse, explode, frozen, trends
from proveout.judge.signals.trends import Direction, Wanted
from proveout.judge.signals.view import View

_NEEDED = (("loss", "reward"), ("grad_norm",))


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of the run.

    ``trend`` maps a role (reward, validation, validation_loss, loss) or a tag to a direction, or to a
    direction with an end level that is good enough in its place; without it reward or validation must rise
    (where there is neither, the loss must fall). ``peft`` demands proof of trainable parameters.
    ``thresholds`` replaces numbers of ``data/thresholds.toml`` by name.
    """

    trend: dict[str, Direction | Wanted] | None = None
    peft: bool = False
    thresholds: dict[str, float] = {}


def learning_signal(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Gradients, log-probabilities and weights move; nothing collapses or explodes; the outcome improves."""
    wanted = msgspec.convert(dict(params), Params)
    view = View(evidence, wanted.thresholds)
    said = [
        frozen.gradients(view),
        frozen.constants(view),
        frozen.learning_rate(view),
        frozen.trainable(view, wanted.peft),
        collapse.groups(view),
        collapse.entropy(view),
        explode.limits(view),
        explode.growth(view),
    ]
    if wanted.trend is None:
        said.append(trends.outcome(view))
    else:
        wishes = {
            name: wish if isinstance(wish, Wanted) else Wanted(direction=wish)
            for name, wish in wanted.trend.items()
        }
        said.append(trends.asked(view, wishes))
    findings = [*_missing(view), *_changed(view), *(finding for one in said for finding in one.findings)]
    held = tuple(cite for one in (said[-1], *said[:-1]) for cite in one.held)  # the outcome is what was asked
    return CriterionResult(kind="learning_signal", findings=tuple(findings), held=held)


def _missing(view: View) -> list[Finding]:
    return [
        say.error(
            "learning_signal.missing",
            f"no series of {' or '.join(names)} is in the metrics: nothing can be said of learning",
            where=Where(file=view.evidence.log),
        )
        for names in _NEEDED
        if not view.role(*names)
    ]


def _changed(view: View) -> list[Finding]:
    return [
        say.notice(
            "learning_signal.threshold",
            f"the threshold {name} is {value:g} for this step",
            where=Where(key=f"criteria.learning_signal.thresholds.{name}"),
        )
        for name, value in view.changed.items()
    ]
