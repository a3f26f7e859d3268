"""The one report model. Renderers receive it and hold no logic of their own."""

from __future__ import annotations

import msgspec

from proveout.domain.attribution import Attribution
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
    """One phase of an attempt on the timeline: seconds after the attempt's start.

    ``of`` names the training steps that it belongs to ("step 3", "steps 1 to 5"); empty outside of training.
    """

    name: str
    start: float
    end: float
    of: str = ""


class PlotSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One metric for plotting, thinned where it is long; ``marked`` are the offending steps.

    ``plot`` is the title of the plot that it belongs to; series of one step under one title share a plot.
    ``role`` is "candidate" or "baseline"; ``total`` counts the points before thinning. A value that is not
    finite is None.
    """

    step_id: str
    tag: str
    steps: tuple[int, ...]
    values: tuple[float | None, ...]
    marked: tuple[int, ...] = ()
    role: str = "candidate"
    plot: str = ""
    unit: str = ""
    total: int = 0


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a log around the one that matters: ``first`` is the number of the first of ``lines``."""

    file: str
    first: int
    lines: tuple[str, ...]
    marked: int


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a step's resolved configuration that differs from the baseline; None: the key is not there."""

    step_id: str
    key: str
    baseline: str | None
    candidate: str | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one run, ready to be rendered.

    ``timeline``, ``commands`` and ``excerpts`` are by attempt directory; ``deliverable_steps`` gives, for each
    of ``deliverables``, the ids of the steps whose evidence stands behind it. ``baseline`` names the run that
    this one is shown against, with its verdict; empty where none was given. ``attributions`` say whose failure
    each step is that was run again on the commit before the change.
    """

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
    config_diff: tuple[ConfigChange, ...] = ()
    deliverable_steps: tuple[tuple[str, ...], ...] = ()
    commands: dict[str, str] = {}
    excerpts: dict[str, Excerpt] = {}
    baseline: str = ""
    attributions: tuple[Attribution, ...] = ()
    run: RunInfo | None = None
    schema_version: int = SCHEMA_VERSION
