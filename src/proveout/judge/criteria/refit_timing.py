"""Refit timing: what share of a step the transfer of weights takes, and which boundary dominates."""

from __future__ import annotations

import re
import statistics
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.metrics import MetricTable, Series
from proveout.judge import logtext, say

_LINE = re.compile(r"REFIT_\w*TIMING\s")
_PAIR = re.compile(r"(\w+)=([-+.\deE]+)(?=\s|$)")


class Boundary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a weight transfer: the tags and log keys whose seconds add up to it."""

    what: str
    tags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tags of a group, the first that is recorded counts."""

    tags: tuple[str, ...]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All names, from ``data/refit.toml``."""

    step: Names
    total: Names
    transfer: Names
    boundary: dict[str, Boundary]


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``max_share``: the largest share of the step time (0 to 1) that a transfer may take, by medians.

    ``series``: tags that must be recorded, each of them.
    """

    max_share: float | None = None
    series: tuple[str, ...] = ()


@cache
def known() -> Known:
    """The names of timing series and log keys."""
    text = files("proveout.judge").joinpath("data/refit.toml").read_text()
    return msgspec.convert(tomllib.loads(text), Known)


def refit_timing(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """The time of weight transfers is recorded; it is reported by boundary, and limited where asked."""
    wanted = msgspec.convert(dict(params), Params)
    table, names = evidence.metrics, known()
    parts = _from_series(table) or _from_log(evidence)
    total, step = _first(table, names.total), _first(table, names.step)
    if total is None and not parts:
        what = "no refit timing is recorded: neither prepare_for_generation nor refit nor weight_transfer"
        missing = say.error("refit_timing.missing", what, where=Where(file=evidence.log))
        return CriterionResult(kind="refit_timing", findings=(missing,))
    held: list[Citation] = []
    findings: list[Finding] = [
        say.error("refit_timing.missing", f"{tag} is not in the metrics", where=Where(metric=tag))
        for tag in wanted.series
        if tag not in table.series or not len(table.series[tag])
    ]
    if total is not None:
        tag, series = total
        seconds = statistics.median(series.values)
        share = seconds / statistics.median(step[1].values) if step is not None else None
        of_step = f", {share:.0%} of a step" if share is not None else ""
        held.append(
            say.point(tag, series, series.steps[-1], f"refit takes {seconds:.3g} s (median){of_step}")
        )
        findings += _limit(wanted, tag, share)
    transfer = _first(table, names.transfer)
    if total is not None and transfer is not None:
        inside = statistics.median(transfer[1].values)
        what = f"of which {inside:.3g} s transfer and update (median)"
        held.append(say.point(transfer[0], transfer[1], transfer[1].steps[-1], what))
    if parts:
        dominating, cites = _dominating(parts)
        held += cites
        findings.append(dominating)
    return CriterionResult(kind="refit_timing", findings=tuple(findings), held=tuple(held))


def _first(table: MetricTable, names: Names) -> tuple[str, Series] | None:
    found = ((tag, table.series[tag]) for tag in names.tags if tag in table.series)
    return next(((tag, series) for tag, series in found if len(series)), None)


def _limit(wanted: Params, tag: str, share: float | None) -> list[Finding]:
    if wanted.max_share is None:
        return []
    if share is None:
        return [
            say.error("refit_timing.no-step-time", "no step time to take a share of", where=Where(metric=tag))
        ]
    if share <= wanted.max_share:
        return []
    what = f"refit takes {share:.1%} of a step, {wanted.max_share:.1%} is the most"
    return [say.error("refit_timing.share", what, where=Where(metric=tag))]


def _from_series(table: MetricTable) -> dict[str, tuple[float, Citation]]:
    parts: dict[str, tuple[float, Citation]] = {}
    for name, boundary in known().boundary.items():
        tags = [
            t
            for t in table.tags()
            if t.startswith("timing") and any(fnmatchcase(t, p) for p in boundary.tags)
        ]
        series = {tag: table.series[tag] for tag in tags if len(table.series[tag])}
        if series:
            seconds = sum(statistics.median(one.values) for one in series.values())
            tag = max(series, key=lambda t: statistics.median(series[t].values))
            what = f"{name}: {boundary.what}, {seconds:.3g} s (median)"
            parts[name] = (seconds, say.point(tag, series[tag], series[tag].steps[-1], what))
    return parts


def _from_log(evidence: Evidence) -> dict[str, tuple[float, Citation]]:
    samples: dict[str, list[float]] = {}
    lines: dict[str, logtext.Line] = {}
    try:
        for line in logtext.scan(logtext.log_path(evidence), ("TIMING",)):
            if not _LINE.search(line.text):
                continue
            pairs = dict(_PAIR.findall(line.text))
            for name, boundary in known().boundary.items():
                seconds = [float(pairs[key]) for key in boundary.keys if key in pairs]
                if seconds:
                    samples.setdefault(name, []).append(sum(seconds))
                    lines[name] = line
    except OSError:
        return {}
    return {
        name: (
            statistics.median(values),
            say.log_line(
                evidence.log,
                lines[name].number,
                lines[name].text,
                f"{name}: {known().boundary[name].what}, {statistics.median(values):.3g} s (median)",
            ),
        )
        for name, values in samples.items()
    }


def _dominating(parts: Mapping[str, tuple[float, Citation]]) -> tuple[Finding, tuple[Citation, ...]]:
    whole = sum(seconds for seconds, _ in parts.values())
    name = max(parts, key=lambda part: parts[part][0])
    share = parts[name][0] / whole if whole else 0.0
    what = f"{name} dominates the transfer: {known().boundary[name].what}, {share:.0%} of {whole:.3g} s"
    if name != "broadcast" and "broadcast" in parts:
        what += "; the limit is in preparing weights, not in sending them"
    finding = say.notice("refit_timing.dominates", what, evidence=(parts[name][1],))
    return finding, tuple(cite for _, cite in parts.values())
