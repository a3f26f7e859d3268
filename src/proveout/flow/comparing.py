"""A run against a baseline run: verdicts, metrics, configuration, environment, and what that says of each step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from proveout.capture.config import read_config
from proveout.domain.claims import deciding
from proveout.domain.errors import BlockedError, ProveoutError, UsageError, nearest
from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.files import read_json
from proveout.domain.finding import Boundary
from proveout.domain.layout import AttemptLayout
from proveout.domain.redact import MASK, is_secret_name, text
from proveout.domain.report import Report
from proveout.domain.step import ATTEMPT_DIR, Coverage, Step
from proveout.domain.verdict import Verdict
from proveout.flow.indexing import index_of
from proveout.flow.reporting import build
from proveout.flow.run_record import record_of
from proveout.judge import metricfile
from proveout.judge.compare import Comparison, compare_tables
from proveout.judge.tolerance import EXACT, Tolerance
from proveout.store.history.flaky import flaky
from proveout.store.history.queries import steps as indexed_steps
from proveout.store.history.records import Filter
from proveout.store.runs import Run

_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_DECIDED = frozenset({Verdict.PASS, Verdict.FAIL})


class Standing(StrEnum):
    """What the comparison says of a step. UNDECIDED: one of the runs has no verdict on it."""

    SAME = "same"
    NEW = "new"
    PRE_EXISTING = "pre-existing"
    FIXED = "fixed"
    FLAKY = "flaky"
    ENVIRONMENT = "environment"
    UNDECIDED = "undecided"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One key that differs; None where a side lacks it."""

    key: str
    run: str | None
    baseline: str | None


class StepComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One step in both runs. ``metrics`` is None where one side has none."""

    step: str
    coverage: Coverage
    verdict: Verdict | None
    baseline_verdict: Verdict | None
    standing: Standing
    why: str = ""
    metrics: Comparison | None = None
    config: tuple[Difference, ...] = ()
    environment: tuple[Difference, ...] = ()


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its baseline; ``change`` says what was under test in each, '' where it is not recorded."""

    run: str
    baseline: str
    verdict: Verdict
    baseline_verdict: Verdict
    change: str
    baseline_change: str
    steps: tuple[StepComparison, ...]

    @property
    def ok(self) -> bool:
        """No step got worse or is undecided, and every metric that was compared is within tolerance."""
        fine = {Standing.SAME, Standing.PRE_EXISTING, Standing.FIXED}
        return bool(self.steps) and all(
            step.standing in fine and (step.metrics is None or step.metrics.ok) for step in self.steps
        )


def compare_runs(
    run: Run,
    baseline: Run,
    tolerances: Mapping[str, Tolerance] | None = None,
    default: Tolerance = EXACT,
    step: str | None = None,
) -> RunComparison:
    """Every step of either run, or ``step`` alone. Raises UsageError for a step that neither has."""
    ours, theirs = _Side(run), _Side(baseline)
    names = list(dict.fromkeys([*ours.results, *theirs.results]))
    if step is not None and step not in names:
        raise UsageError(f"no step {step!r}{nearest(step, names)}", where=run.layout.id)
    wanted = [step] if step is not None else names
    known_flaky = _known_flaky(run, baseline)
    return RunComparison(
        run=run.layout.id,
        baseline=baseline.layout.id,
        verdict=ours.report.result,
        baseline_verdict=theirs.report.result,
        change=ours.change,
        baseline_change=theirs.change,
        steps=tuple(_step(name, ours, theirs, known_flaky, (tolerances or {}, default)) for name in wanted),
    )


class _Side:
    """One of the two runs, read once."""

    def __init__(self, run: Run) -> None:
        self.run, self.plan = run, run.plan
        self.report: Report = build(run)
        self.steps: dict[str, Step] = {step.id: step for step in self.plan.steps}
        self.results: dict[str, StepResult] = {result.id: result for result in self.report.steps}
        self.change = record_of(run, self.report).change

    def files(self, name: str) -> AttemptLayout | None:
        """The files of the last attempt of a step."""
        result = self.results.get(name)
        if result is None or not result.attempts:
            return None
        return AttemptLayout(self.run.layout.attempts / result.attempts[-1].directory)

    def config(self, name: str) -> dict[str, str]:
        """The resolved configuration, with the attempt's directory as such."""
        files = self.files(name)
        found = read_config(self.steps[name].config, files.root)[0] if files is not None else None
        return _without_place(found or {}, files)

    def environment(self, name: str) -> dict[str, str]:
        """The environment of the attempt's process, as it was written: without secrets."""
        files = self.files(name)
        try:
            found = read_json(files.env, dict[str, Any]) if files is not None else {}
        except UsageError:
            return {}
        kept = {key: value for key, value in found.items() if key not in _SHELL}
        return _without_place(kept, files)


def _without_place(values: Mapping[str, Any], files: AttemptLayout | None) -> dict[str, str]:
    """The values as texts, with the attempt's directory as such wherever the run lay when it was made."""
    run, attempt = (files.root.parents[1].name, files.root.name) if files is not None else ("", "")
    place = re.compile(rf"[^\s'\"=:,]*/{re.escape(run)}/attempts/{re.escape(attempt)}")
    texts = {key: place.sub(ATTEMPT_DIR, _text(value)) for key, value in values.items()}
    return {
        key: MASK if is_secret_name(key.replace(".", "_")) else text(value) for key, value in texts.items()
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _step(
    name: str,
    ours: _Side,
    theirs: _Side,
    known_flaky: frozenset[str],
    tolerances: tuple[Mapping[str, Tolerance], Tolerance],
) -> StepComparison:
    mine, other = ours.results.get(name), theirs.results.get(name)
    standing, why = _standing(mine, other, known=name in known_flaky)
    both = name in ours.steps and name in theirs.steps
    one = mine or other
    if one is None:
        raise KeyError(name)
    return StepComparison(
        step=name,
        coverage=one.coverage,
        verdict=mine.verdict if mine else None,
        baseline_verdict=other.verdict if other else None,
        standing=standing,
        why=why,
        metrics=_metrics(ours.files(name), theirs.files(name), *tolerances),
        config=_differences(ours.config(name), theirs.config(name)) if both else (),
        environment=_differences(ours.environment(name), theirs.environment(name)) if both else (),
    )


def _standing(mine: StepResult | None, other: StepResult | None, *, known: bool) -> tuple[Standing, str]:
    if mine is None or other is None:
        return Standing.UNDECIDED, f"the {'run' if mine is None else 'baseline'} has no such step"
    for side, result in (("run", mine), ("baseline", other)):
        if unsure := _unsure(side, result):
            return unsure
    if mine.verdict is other.verdict:
        return _alike(mine, other)
    if known:
        return Standing.FLAKY, "the history holds both verdicts for the same code and command"
    return (Standing.FIXED, _reason(other)) if mine.verdict is Verdict.PASS else (Standing.NEW, _reason(mine))


def _unsure(side: str, result: StepResult) -> tuple[Standing, str] | None:
    """What one side says by itself where it has no plain Pass or Fail."""
    if _of_environment(result):
        return Standing.ENVIRONMENT, f"in the {side}: {_reason(result)}"
    if {attempt.verdict for attempt in result.attempts} >= _DECIDED:
        return Standing.FLAKY, f"attempts of the {side} both passed and failed"
    if result.verdict not in _DECIDED:
        return Standing.UNDECIDED, f"{result.verdict} in the {side}: {_reason(result)}"
    return None


def _alike(mine: StepResult, other: StepResult) -> tuple[Standing, str]:
    if mine.verdict is Verdict.PASS:
        return Standing.SAME, ""
    if _causes(mine) == _causes(other):
        return Standing.PRE_EXISTING, _reason(mine)
    return Standing.NEW, f"{_reason(mine)}; the baseline failed otherwise: {_reason(other)}"


def _of_environment(result: StepResult) -> bool:
    last = result.attempts[-1] if result.attempts else None
    triage = last.triage if last else None
    return result.verdict is Verdict.BLOCKED or (
        result.verdict is not Verdict.PASS and triage is not None and triage.boundary is Boundary.ENVIRONMENT
    )


def _causes(result: StepResult) -> frozenset[str]:
    last = result.attempts[-1] if result.attempts else None
    if last is None:
        return frozenset({result.reason})
    triage = {f"triage {last.triage.boundary} {last.triage.subkind}"} if last.triage else set()
    return frozenset({finding.id for finding in deciding(last)} | triage)


def _reason(result: StepResult) -> str:
    last: AttemptResult | None = result.attempts[-1] if result.attempts else None
    if last is not None and last.triage is not None and last.triage.cause is not None:
        return last.triage.cause.text or last.triage.cause.what
    found = deciding(last) if last is not None else ()
    return found[0].what if found else result.reason


def _metrics(
    ours: AttemptLayout | None,
    theirs: AttemptLayout | None,
    tolerances: Mapping[str, Tolerance],
    default: Tolerance,
) -> Comparison | None:
    if ours is None or theirs is None:
        return None
    try:
        mine, other = metricfile.load(ours.metrics).table, metricfile.load(theirs.metrics).table
    except ProveoutError:
        return None
    if not mine.series and not other.series:
        return None
    return compare_tables(mine, other, tolerances, default)


def _differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[Difference, ...]:
    keys: Iterable[str] = sorted(ours.keys() | theirs.keys())
    return tuple(
        Difference(key=key, run=ours.get(key), baseline=theirs.get(key))
        for key in keys
        if ours.get(key) != theirs.get(key)
    )


def _known_flaky(run: Run, baseline: Run) -> frozenset[str]:
    """Steps of which the history holds both verdicts for the code of one of the two runs."""
    index = index_of(run.layout.root.parent)
    if not index.path.exists():
        return frozenset()
    try:
        found = flaky(indexed_steps(index, Filter()))
    except BlockedError:
        return frozenset()
    two = {run.layout.id, baseline.layout.id}
    return frozenset(one.step for one in found if two & set(one.runs) and len(set(one.runs) - two) > 0)
