"""Where the time of an attempt went, from the wall times and the timing series of its metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from proveout.domain.evidence import ExitRecord
from proveout.domain.metrics import MetricTable, Series
from proveout.domain.report import Phase
from proveout.flow.plots import layout

GROUPS = 40
SHORTEST = 1e-6


class _Span(msgspec.Struct, kw_only=True):
    """One training step, or several in a row: seconds after the attempt's start, seconds by phase name."""

    first: int
    last: int
    start: float
    end: float
    seconds: dict[str, float]


def timeline(table: MetricTable, ended: ExitRecord) -> tuple[Phase, ...]:
    """The phases of one attempt in order: start-up, set-up, what each step is made of, and the end.

    Only measured times are shown: where the metrics carry no wall time the attempt is one phase. Long runs
    are shown in at most 40 groups of steps, in which each phase is the sum of its parts. Empty where it is
    not known when the attempt began and ended.
    """
    length = ended.finished - ended.started
    if not ended.started or length <= 0:
        return ()
    began = ended.started + ended.skew
    spans = _grouped([span for span in _spans(table, began) if 0 <= span.start <= span.end])
    setup = _setup(table, began)
    marks = [p.start for p in setup] or [span.start for span in spans[:1]]
    if not marks:
        return (Phase(name="attempt", start=0.0, end=length),)
    phases = [Phase(name="start-up", start=0.0, end=marks[0]), *setup]
    for span in spans:
        phases.extend(_parts(span))
    phases.append(Phase(name="end", start=min(length, max(p.end for p in phases)), end=length))
    return tuple(phase for phase in phases if phase.end - phase.start > SHORTEST)


def _first(table: MetricTable, tags: list[str]) -> Series | None:
    return next((table.series[tag] for tag in tags if tag in table.series and len(table.series[tag])), None)


def _setup(table: MetricTable, started: float) -> list[Phase]:
    series = _first(table, layout()["timeline"]["setup"])
    if series is None or not math.isfinite(series.wall[0]):
        return []
    end = series.wall[0] - started
    start = end - series.values[0]
    return [Phase(name="set-up", start=start, end=end)] if 0 <= start <= end else []


def _spans(table: MetricTable, started: float) -> Iterator[_Span]:
    whole = _first(table, layout()["timeline"]["step"])
    if whole is None:
        return
    parts = {
        row["name"]: [table.series[tag].as_dict() for tag in row["tags"] if tag in table.series]
        for row in layout()["timeline"]["phase"]
    }
    for step, value, wall in zip(whole.steps, whole.values, whole.wall, strict=True):
        if math.isfinite(wall) and math.isfinite(value):
            end = wall - started
            seconds = {name: sum(series.get(step, 0.0) for series in found) for name, found in parts.items()}
            yield _Span(first=step, last=step, start=end - value, end=end, seconds=seconds)


def _grouped(spans: list[_Span]) -> list[_Span]:
    size = math.ceil(len(spans) / GROUPS) if spans else 1
    if size == 1:
        return spans
    grouped = []
    for at in range(0, len(spans), size):
        part = spans[at : at + size]
        seconds = {name: sum(span.seconds[name] for span in part) for name in part[0].seconds}
        grouped.append(
            _Span(
                first=part[0].first,
                last=part[-1].last,
                start=part[0].start,
                end=part[-1].end,
                seconds=seconds,
            )
        )
    return grouped


def _parts(span: _Span) -> Iterator[Phase]:
    """The phases of a span laid end to end; what none of them explains is "other"."""
    of = f"step {span.first}" if span.first == span.last else f"steps {span.first} to {span.last}"
    at = span.start
    for name, seconds in span.seconds.items():
        if seconds > 0 and at < span.end:
            yield Phase(name=name, start=at, end=min(at + seconds, span.end), of=of)
            at = min(at + seconds, span.end)
    yield Phase(name="other", start=at, end=span.end, of=of)
