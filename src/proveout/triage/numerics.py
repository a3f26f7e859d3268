"""Failures that only numbers show: readings in the log, and the metric table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from proveout.domain.finding import Citation, Where
from proveout.domain.metrics import MetricTable, Series
from proveout.triage.catalog import Rule, compile_pattern
from proveout.triage.scan import Event, LogScan

PROB_ERROR = "token_mult_prob_error"
PROB_ERROR_LIMIT = 1.05
GEN_KL_LIMIT = 0.02
GRAD_LIMIT = 1e6
_LOOKED_AT = 1000
_JUDGED = re.compile(
    r"(?:^|/)(?:loss|pg_loss|vf_loss|policy_loss|value_loss|grad_norm|reward|kl_loss|ppo_kl|kl_penalty|entropy|"
    r"gen_kl_error|policy_kl_error|js_divergence_error|token_mult_prob_error|probs_ratio|approx_entropy|"
    r"critic/(?:score|rewards|advantages|returns|values)/mean|loss/train)$"
)
_FINITE = r"['\"]?\s*[:=]\s*['\"]?(?:np\.float\d+\()?(?P<value>[-+]?[0-9][0-9.eE+-]*)"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A numeric failure: sub-kind, what shows it, and what it says."""

    subkind: str
    citation: Citation
    story: str


def from_log(events: Sequence[Event], scans: Sequence[LogScan]) -> Event | None:
    """The first bad reading that did not pass by itself, or None.

    A value that was bad once and is good afterwards (a loss scaler that skips a step) is no failure.
    """
    lasting = [event for event in events if event.rule and event.rule.metric and _lasting(event, scans)]
    return min(lasting, key=lambda e: (e.file, e.line.number), default=None)


def _lasting(event: Event, scans: Sequence[LogScan]) -> bool:
    if event.count > 1:
        return True
    scan = scans[event.file]
    after = scan.tail[max(0, event.last_offset - scan.tail_offset) :]
    rest = after.split(b"\n", 1)[1] if b"\n" in after else b""
    rule = event.rule
    if rule is None or event.last_offset < scan.tail_offset:
        return False
    metric = re.escape(_metric_of(event, rule)).encode()
    name = re.compile(metric + _FINITE.encode())
    bad = re.compile(
        metric + rb"['\"]?\s*[:=]\s*['\"]?(?:np\.float\d+\(|tensor\()?[-+]?(?:nan|inf)", re.IGNORECASE
    )
    line = event.line.text.encode()
    if bad.search(line) is None and name.search(line) is None:
        rest = _after_own_step(rest, name, bad)
    return bad.search(rest) is not None or not _good(rest, name, compile_pattern(rule.pattern))


def _after_own_step(rest: bytes, name: re.Pattern[bytes], bad: re.Pattern[bytes]) -> bytes:
    """What follows the step that a warning without a value tells of: its next reading shows that value once more."""
    shown, good = bad.search(rest), name.search(rest)
    return rest[shown.end() :] if shown and (good is None or shown.start() < good.start()) else rest


def _good(rest: bytes, name: re.Pattern[bytes], bad: Any) -> bool:
    """Whether one of the next values of a metric is not bad."""
    for match in islice(name.finditer(rest), _LOOKED_AT):
        start, end = rest.rfind(b"\n", 0, match.start()) + 1, rest.find(b"\n", match.end())
        if not bad.search(rest[start : end if end >= 0 else len(rest)]):
            return True
    return False


def _metric_of(event: Event, rule: Rule) -> str:
    """The metric's name as the line prints it, without what stands before and after."""
    found = compile_pattern(rule.pattern).search(event.line.text.encode())
    text = found.group().decode("utf-8", "replace") if found else ""
    named = re.search(rf"[\w/.]*{re.escape(rule.metric)}[\w/.]*", text)
    if named:
        return named.group()
    return re.split(r"['\"]?\s*[:=]", text, maxsplit=1)[0].strip(" _/'\"(){},|-") or rule.metric


def from_metrics(metrics: MetricTable) -> Reading | None:
    """What a metric table shows by itself: a value that is not finite, or logprobs that disagree."""
    for tag in metrics.tags():
        series = metrics.get(tag)
        if series is not None and tag.endswith(PROB_ERROR):
            reading = prob_error(tag, series, metrics)
            if reading is not None:
                return reading
    for tag in metrics.tags():
        series = metrics.get(tag)
        if series is None or not _JUDGED.search(tag):
            continue
        steps = series.non_finite_steps()
        if steps and (len(steps) > 1 or steps[-1] == series.steps[-1]):
            value = series.as_dict()[steps[0]]
            return Reading(
                subkind="nan-grad" if "grad" in tag else "nan-loss",
                citation=_cite(tag, steps[0], value),
                story=f"{tag} is {value} at step {steps[0]}, {len(steps)} of {len(series)} steps are not finite",
            )
    for tag in metrics.tags():
        series = metrics.get(tag)
        if series is None or not tag.endswith("grad_norm"):
            continue
        high = [(step, value) for step, value in series if value > GRAD_LIMIT]
        if high:
            return Reading(
                subkind="exploding-grad-norm",
                citation=_cite(tag, *high[0]),
                story=f"{tag} exceeds {GRAD_LIMIT:g} in {len(high)} of {len(series)} steps",
            )
    return None


def prob_error(tag: str, series: Series, metrics: MetricTable) -> Reading | None:
    """A failing ``token_mult_prob_error`` explained: since when, and which side moved.

    The metric is the mean over valid tokens of exp(|generation logprob - policy logprob|); NeMo-RL,
    nemo_rl/algorithms/loss_functions. A sampling ratio mean exp(policy - generation) far below 1 says that
    the generation side gives its own tokens more probability than the policy does (stale or other weights in
    generation), far above 1 the reverse.
    """
    bad = [(step, value) for step, value in series if not value < PROB_ERROR_LIMIT]
    if not bad:
        return None
    step, value = bad[0]
    first = series.steps[0]
    parts = [
        f"{tag} is {value:.6g} at step {step} (limit {PROB_ERROR_LIMIT}), {len(bad)} of {len(series)} steps"
    ]
    if step == first:
        parts.append(
            "it is wrong from the first step on: the weights differ before any update "
            "(conversion, export or the generation backend)"
        )
    else:
        parts.append(
            f"it was right until step {step - 1}: the first update did not reach generation as it is in the policy "
            "(refit, a stale cache, or an update that only one side sees)"
        )
    prefix = tag[: -len(PROB_ERROR)]
    ratio = metrics.get(prefix + "sampling_importance_ratio")
    at = ratio.as_dict().get(step) if ratio is not None else None
    if at is not None and math.isfinite(at):
        if at < 0.98:
            parts.append(
                f"sampling_importance_ratio {at:.4g}: generation trusts its tokens more than the policy does"
            )
        elif at > 1.02:
            parts.append(
                f"sampling_importance_ratio {at:.4g}: the policy trusts the tokens more than generation does"
            )
        else:
            parts.append(f"sampling_importance_ratio {at:.4g}: few tokens differ much, most agree")
    share = _share(value, metrics.get(prefix + "max_seq_mult_prob_error"), step)
    if share:
        parts.append(share)
    return Reading(subkind="logprob-mismatch", citation=_cite(tag, step, value), story="; ".join(parts))


def _share(mean: float, worst: Series | None, step: int) -> str:
    at = worst.as_dict().get(step) if worst is not None else None
    if at is None or not math.isfinite(at) or at <= 1 or not math.isfinite(mean):
        return ""
    if (mean - 1) > 0.5 * (at - 1):
        return "all sequences are off alike: every token is concerned"
    return f"the worst sequence is off by {at:.4g}: a share of the tokens is concerned"


def _cite(tag: str, step: int, value: float) -> Citation:
    return Citation(
        what="the first value out of bounds", where=Where(metric=tag, step=step), text=f"{tag} = {value:.6g}"
    )
