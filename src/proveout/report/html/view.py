"""The report model in the order and the words of the page."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.report import Deliverable, Excerpt, PlotSeries, Report
from proveout.domain.step import LevelRequest
from proveout.domain.verdict import Verdict
from proveout.report.html.chart import Chart, chart
from proveout.report.html.gantt import Gantt, Total, panels, seconds, totals

T = TypeVar("T")
_SIGN = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✕",
    Verdict.BLOCKED: "⊘",
    Verdict.SKIPPED: "–",
    Verdict.NOT_REQUESTED: "–",
    Verdict.INCOMPLETE: "…",
}
_FILES = ("run.log", "metrics.json", "config.json", "command.sh", "env.json", "result.json")
_SLUG = {verdict: verdict.value.lower().replace(" ", "-") for verdict in Verdict}
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTICE: 2}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of each kind a page holds.

    Points of one series and of all, series that are plotted at all (those of steps that did not pass come
    first), items of one list, lines of a log excerpt, steps.
    """

    points: int = 200
    all_points: int = 10_000
    series: int = 240
    items: int = 400
    excerpt: int = 40
    steps: int = 400


class Some(msgspec.Struct, frozen=True):
    """The first of a list, and how many more there are."""

    shown: tuple[Any, ...]
    more: int


class Badge(msgspec.Struct, frozen=True):
    """A verdict as shown: never by colour alone."""

    word: str
    slug: str
    sign: str


class LogLine(msgspec.Struct, frozen=True):
    """One numbered line of an excerpt."""

    number: int
    text: str
    cause: bool


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt with all that stands behind its verdict."""

    anchor: str
    number: int
    directory: str
    badge: Badge
    ended: str
    took: str
    command: str
    files: tuple[tuple[str, str], ...]
    checks: Some
    findings: Some
    held: Some
    panels: tuple[Gantt, ...]
    totals: tuple[Total, ...]


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """One step: its attempts, newest last, and the plots of the last one."""

    anchor: str
    name: str
    badge: Badge
    reason: str
    attempts: tuple[AttemptView, ...]
    charts: tuple[Chart, ...]


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a step did not pass: triage's answer in its context, or the findings that decided it."""

    step: StepView
    attempt: AttemptView
    boundary: str
    subkind: str
    stage: str
    confidence: str
    text: Citation | None
    where: str
    link: str
    excerpt: tuple[LogLine, ...]
    aftermath: Some
    noise: Some
    deciding: Some
    remedy: str
    undecided: str
    innocent: bool


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the template shows."""

    title: str
    badge: Badge
    summary: str
    facts: tuple[tuple[str, str], ...]
    causes: Some
    deliverables: tuple[tuple[Deliverable, Badge, tuple[StepView, ...]], ...]
    steps: tuple[StepView, ...]
    left_steps: int
    left_plots: int
    config: Some
    baseline: str
    levels: Some
    findings: Some
    evidence: Some
    limitations: Some
    follow_ups: Some
    substitutions: Some


class _Builder:
    """Builds the page's parts; paths inside the run directory are shown from there."""

    def __init__(self, report: Report, limits: Limits) -> None:
        self._report, self._limits = report, limits
        self._plotted = self._chosen_plots()
        self._points = min(limits.points, limits.all_points // max(1, sum(map(len, self._plotted.values()))))
        self._root = report.run.directory.rstrip("/") + "/" if report.run is not None else ""

    def _chosen_plots(self) -> dict[str, list[PlotSeries]]:
        """Series by step id, as many steps as fit."""
        if not self._limits.points:
            return {}
        by_step: dict[str, list[PlotSeries]] = {}
        for one in self._report.plots:
            if one.steps:
                by_step.setdefault(one.step_id, []).append(one)
        passed = {step.id for step in self._report.steps if step.verdict is Verdict.PASS}
        chosen: dict[str, list[PlotSeries]] = {}
        left = self._limits.series
        for step_id in sorted(by_step, key=passed.__contains__):
            left -= len(by_step[step_id])
            if left >= 0:
                chosen[step_id] = by_step[step_id]
        return chosen

    def page(self) -> Page:
        report = self._report
        chosen = report.steps[: self._limits.steps]
        steps = {step.id: self._step(at, step) for at, step in enumerate(chosen)}
        causes = [cause for step in chosen for cause in self._cause(step, steps[step.id])]
        ids = report.deliverable_steps or ((),) * len(report.deliverables)
        return Page(
            title=f"{report.result.value}: {', '.join(map(str, report.requested_coverage)) or 'nothing requested'}",
            badge=badge(report.result),
            summary=self.short(report.summary),
            facts=tuple(self._facts()),
            causes=self._some(causes),
            deliverables=tuple(
                (
                    msgspec.structs.replace(line, detail=self.short(line.detail)),
                    badge(line.verdict),
                    tuple(steps[step] for step in behind if step in steps),
                )
                for line, behind in zip(report.deliverables, ids, strict=True)
            ),
            steps=tuple(steps.values()),
            left_steps=len(report.steps) - len(chosen),
            left_plots=len({one.step_id for one in report.plots if one.steps}) - len(self._plotted),
            config=self._some(report.config_diff),
            baseline=report.baseline,
            levels=self._some([(row, _asked(row)) for row in _asked_first(report.levels)]),
            findings=self._findings(report.findings),
            evidence=self._cites(report.evidence),
            limitations=self._some(report.limitations),
            follow_ups=self._some([text for text in map(self.short, report.follow_ups) if text != "none"]),
            substitutions=self._some(report.substitutions),
        )

    def short(self, text: str) -> str:
        """``text`` with files of the run directory named from there."""
        return text.replace(self._root, "") if self._root != "/" and self._root else text

    def _facts(self) -> Iterable[tuple[str, str]]:
        report = self._report
        yield "Coverage", ", ".join(map(str, report.requested_coverage)) or "none"
        yield "Model", report.model
        if report.baseline:
            yield "Against", report.baseline
        run = report.run
        if run is not None:
            yield "Run", run.id
            yield "Started", _time(run.started)
            yield "Took", seconds(run.finished - run.started) if run.finished else "not finished"
            yield "proveout", run.version

    def _step(self, at: int, step: StepResult) -> StepView:
        return StepView(
            anchor=f"step-{at + 1}",
            name=str(step.coverage),
            badge=badge(step.verdict),
            reason=self.short(step.reason),
            attempts=tuple(self._attempt(at, attempt) for attempt in step.attempts),
            charts=tuple(self._charts(at, self._plotted.get(step.id, ()))),
        )

    def _charts(self, at: int, series: Sequence[PlotSeries]) -> Iterable[Chart]:
        for place, title in enumerate(dict.fromkeys(one.plot or one.tag for one in series)):
            of_plot = [one for one in series if (one.plot or one.tag) == title]
            yield chart(f"plot-{at + 1}-{place + 1}", title, of_plot, self._points)

    def _attempt(self, at: int, attempt: AttemptResult) -> AttemptView:
        phases = self._report.timeline.get(attempt.directory, ())
        where = f"attempts/{attempt.directory}"
        return AttemptView(
            anchor=f"attempt-{at + 1}-{attempt.number}",
            number=attempt.number,
            directory=where,
            badge=badge(attempt.verdict),
            ended=self.short(str(attempt.exit)),
            took=seconds(max(0.0, attempt.exit.finished - attempt.exit.started)),
            command=self._report.commands.get(attempt.directory, ""),
            files=tuple((name, f"{where}/{name}") for name in _FILES),
            checks=self._some(attempt.checks),
            findings=self._findings(attempt.findings),
            held=self._cites(attempt.held),
            panels=tuple(panels(phases)) if self._limits.points else (),
            totals=tuple(totals(phases)),
        )

    def _cause(self, step: StepResult, view: StepView) -> Iterable[Cause]:
        if not step.attempts or step.verdict is Verdict.PASS:
            return
        last, shown = step.attempts[-1], view.attempts[-1]
        told = last.triage
        deciding = [finding for finding in last.findings if finding.severity is Severity.ERROR]
        if told is None and not deciding:
            return
        cause = told.cause if told is not None else None
        yield Cause(
            step=view,
            attempt=shown,
            boundary=told.boundary.value if told else "",
            subkind=told.subkind if told else "",
            stage=told.stage.replace("_", " ") if told else "",
            confidence=told.confidence if told else "",
            text=cause,
            where=self.short(str(cause.where)) if cause else "",
            link=self._link(cause.where) if cause else "",
            excerpt=self._lines(self._report.excerpts.get(last.directory)),
            aftermath=self._cites(told.aftermath if told else ()),
            noise=self._cites(told.noise if told else ()),
            deciding=self._findings(deciding),
            remedy=told.remedy if told else "",
            undecided=told.undecided_because if told else "",
            innocent=step.verdict is Verdict.BLOCKED,
        )

    def _lines(self, excerpt: Excerpt | None) -> tuple[LogLine, ...]:
        if excerpt is None:
            return ()
        marked = excerpt.marked - excerpt.first
        half = self._limits.excerpt // 2
        low, high = max(0, marked - half), marked + half + 1
        return tuple(
            LogLine(excerpt.first + i, text, excerpt.first + i == excerpt.marked)
            for i, text in enumerate(excerpt.lines)
            if low <= i < high
        )

    def _findings(self, findings: Iterable[Finding]) -> Some:
        ordered = sorted(findings, key=lambda finding: _RANK[finding.severity])
        return self._some([(f, self.short(f.what), self.short(str(f.where))) for f in ordered])

    def _cites(self, cites: Iterable[Citation]) -> Some:
        return self._some(
            [
                (cite.what, self.short(cite.text), self.short(str(cite.where)), self._link(cite.where))
                for cite in cites
            ]
        )

    def _link(self, where: Where) -> str:
        """A relative link to a file of the run directory, or nothing."""
        path = self.short(where.file or "")
        inside = path.startswith("attempts/") and ".." not in path and "*" not in path
        return path if inside and ":" not in path else ""

    def _some(self, items: Iterable[T]) -> Some:
        every = tuple(items)
        return Some(every[: self._limits.items], max(0, len(every) - self._limits.items))


def page(report: Report, limits: Limits) -> Page:
    """The page of a report within ``limits``."""
    return _Builder(report, limits).page()


def badge(verdict: Verdict) -> Badge:
    """How a verdict is shown."""
    return Badge(verdict.value, _SLUG[verdict], _SIGN[verdict])


def _asked(row: LevelRequest) -> str:
    return "requested" if row.requested else "not requested"


def _asked_first(rows: Sequence[LevelRequest]) -> list[LevelRequest]:
    return sorted(rows, key=lambda row: not row.requested)


def _time(epoch: float) -> str:
    return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
