"""Signs that nothing was learned because nothing moved."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proveout.domain.finding import Boundary, Citation, Finding, Where
from proveout.domain.metrics import Series
from proveout.judge import logtext, say
from proveout.judge.signals.view import Said, View

_TRAINABLE = re.compile(
    r"trainable (?:params|parameters)(?: count)?\s*[:=]\s*([\d,_]+)|([\d,_]+) trainable param", re.IGNORECASE
)
_CONSTANT = {
    "entropy": ("constant-entropy", "the policy's log-probabilities do not change"),
    "logprob": ("constant-logprob", "the policy's log-probabilities do not change"),
    "loss": ("constant-loss", "the loss does not change"),
    "reward": ("constant-reward", "no reward differs from another, so no answer is preferred"),
    "pushed_norm": ("same-weights-pushed", "the same weights were sent to generation again and again"),
}


def gradients(view: View) -> Said:
    """No repeated exactly zero gradient norms."""
    findings, held = [], []
    for tag, series in view.role("grad_norm").items():
        zero = [step for step, value in series if value == 0.0]
        if not zero:
            held.append(say.point(tag, series, series.steps[-1], f"{tag} is never 0 in {len(series)} steps"))
            continue
        cites = tuple(say.point(tag, series, step, "an update with no gradient") for step in zero[:3])
        what = f"{tag} is exactly zero at {say.steps_text(zero)} of {len(series)}"
        if len(zero) == 1 or _solved(view, series, zero):
            why = "" if len(zero) == 1 else ": only after the reward had reached its highest"
            findings.append(say.warning("learning_signal.zero-gradient", what + why, evidence=cites))
        elif _repeated(view, series, zero):
            findings.append(
                say.error(
                    "learning_signal.zero-gradients",
                    what,
                    evidence=cites,
                    boundary=Boundary.NUMERICS,
                    remedy="look for a frozen adapter, groups without a spread of reward, masking",
                )
            )
        else:
            findings.append(say.warning("learning_signal.zero-gradient", what, evidence=cites))
    return Said(tuple(findings), tuple(held))


def _repeated(view: View, series: Series, zero: list[int]) -> bool:
    longest = run = 0
    for _, value in series:
        run = run + 1 if value == 0.0 else 0
        longest = max(longest, run)
    return longest >= view.threshold("zero_gradients_in_a_row") or len(zero) / len(series) >= view.threshold(
        "zero_gradient_share"
    )


def _solved(view: View, series: Series, zero: list[int]) -> bool:
    """Whether zeros come in the second half, only where the reward stands at its best above its start."""
    if zero[0] <= series.steps[len(series) // 2]:
        return False
    rewards = [reward.as_dict() for reward in view.role("reward").values()]
    return any(
        max(points.values()) > next(iter(points.values()))
        and all(points.get(step) == max(points.values()) for step in zero)
        for points in rewards
    )


def constants(view: View) -> Said:
    """No series that must move is equal to the last bit at every step."""
    findings, held = [], []
    for role, (identity, why) in _CONSTANT.items():
        for tag, series in view.role(role).items():
            if len(set(series.values)) > 1:
                what = f"{tag} takes {len(set(series.values))} values in {len(series)} steps"
                held.append(say.point(tag, series, series.steps[-1], what))
            elif len(series) >= (2 if role == "pushed_norm" else view.threshold("constant_values")):
                findings.append(_constant(tag, series, identity, why))
    return Said(tuple(findings), tuple(held))


def _constant(tag: str, series: Series, identity: str, why: str) -> Finding:
    value = series.values[0]
    what = f"{tag} is {say.number(value)} at every one of {len(series)} steps: {why}"
    cites = (
        say.point(tag, series, series.steps[0], "the first"),
        say.point(tag, series, series.steps[-1], "the last"),
    )
    if value != 0.0 and float(f"{value:.5g}") == value and identity != "constant-reward":
        return say.warning(
            f"learning_signal.{identity}", f"{what} (as far as it was printed)", evidence=cites
        )
    return say.error(f"learning_signal.{identity}", what, evidence=cites, boundary=Boundary.TRAINER)


def learning_rate(view: View) -> Said:
    """The learning rate is above zero at some step."""
    findings, held = [], []
    for tag, series in view.role("learning_rate").items():
        if any(value > 0 for value in series.values):
            held.append(say.point(tag, series, series.steps[-1], "the learning rate"))
        else:
            cite = (say.point(tag, series, series.steps[-1], "the learning rate"),)
            findings.append(
                say.error("learning_signal.no-learning-rate", f"{tag} is never above zero", evidence=cite)
            )
    return Said(tuple(findings), tuple(held))


def trainable(view: View, required: bool) -> Said:
    """Some parameters are trainable; ``required`` makes it an ERROR that nothing says so (with PEFT)."""
    findings, held = [], []
    for cite, count in _trainable_counts(view):
        if count > 0:
            held.append(cite)
        else:
            findings.append(
                say.error(
                    "learning_signal.nothing-trainable",
                    "no parameter is trainable",
                    evidence=(cite,),
                    boundary=Boundary.PROVIDER,
                    remedy="the adapter matched no module: compare its target modules with the model's names",
                )
            )
    if required and not findings and not held:
        findings.append(
            say.error(
                "learning_signal.trainable-unknown",
                "nothing in metrics, configuration or log says how many parameters are trainable",
                where=Where(file=view.evidence.log),
                remedy="let the run print its trainable parameters",
            )
        )
    return Said(tuple(findings), tuple(held[:3]))


def _trainable_counts(view: View) -> Iterator[tuple[Citation, int]]:
    for tag, series in view.role("trainable").items():
        yield say.point(tag, series, series.steps[-1], "trainable parameters"), int(series.values[-1])
    try:
        for line in logtext.scan(logtext.log_path(view.evidence), ("rainable param",)):
            found = _TRAINABLE.search(line.text)
            if found:
                count = int(re.sub(r"[,_]", "", found[1] or found[2]) or 0)
                cite = say.log_line(view.evidence.log, line.number, line.text, "trainable parameters")
                yield cite, count
    except OSError:
        return
