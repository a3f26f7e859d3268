"""The one report model. Renderers receive it and hold no logic of their own."""

from __future__ import annotations

import msgspec

from proveout.domain.evidence import StepResult
from proveout.domain.finding import Citation, Finding
from proveout.domain.step import Coverage, LevelRequest
from proveout.domain.verdict import Verdict

SCHEMA_VERSION = 1


class Deliverable(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report's list: what was to be shown, the verdict, and the command, path or reason."""

    name: str
    verdict: Verdict
    detail: str


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which run is reported: times are seconds since the epoch; ``finished`` is 0 while it is incomplete."""

    id: str
    directory: str
    started: float
    finished: float = 0.0
    version: str = ""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of an attempt on the timeline: seconds after the attempt's start."""

    name: str
    start: float
    end: float


class PlotSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One metric for plotting, thinned where it is long; ``marked`` are the offending steps."""

    step_id: str
    tag: str
    steps: tuple[int, ...]
    values: tuple[float | None, ...]
    marked: tuple[int, ...] = ()
    role: str = "candidate"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one run, ready to be rendered."""

    result: Verdict
    summary: str
    model: str
    requested_coverage: tuple[Coverage, ...]
    deliverables: tuple[Deliverable, ...]
    evidence: tuple[Citation, ...]
    limitations: tuple[str, ...]
    follow_ups: tuple[str, ...]
    steps: tuple[StepResult, ...]
    levels: tuple[LevelRequest, ...] = ()
    findings: tuple[Finding, ...] = ()
    substitutions: tuple[str, ...] = ()
    timeline: dict[str, tuple[Phase, ...]] = {}
    plots: tuple[PlotSeries, ...] = ()
    config_diff: tuple[str, ...] = ()
    run: RunInfo | None = None
    schema_version: int = SCHEMA_VERSION
