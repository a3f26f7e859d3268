"""Builds the report model of a run from its plan, its journal and its judged attempts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import msgspec

from proveout import __version__
from proveout.capture.config import read_config
from proveout.domain.attribution import Attribution
from proveout.domain.claims import claim, deciding
from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Citation, Finding, Where
from proveout.domain.layout import AttemptLayout
from proveout.domain.report import Deliverable, Report, RunInfo
from proveout.domain.step import LevelRequest, Plan, Step
from proveout.domain.verdict import Verdict, overall, worst
from proveout.flow.against_report import against_findings, answered, told
from proveout.flow.details import details
from proveout.flow.execute import step_results
from proveout.flow.isolation_findings import isolation_evidence, isolation_findings
from proveout.flow.keep import with_kept
from proveout.flow.launched import launched
from proveout.flow.no_graph import no_graph_findings, no_graph_limitations
from proveout.flow.noise import noise_limitations
from proveout.flow.under_test import BRIDGE_TESTS, bridge_checks, local_import, repositories
from proveout.loops import limits
from proveout.store.runs import Run

LOOP_NAMES = {"nemo-rl": "NeMo-RL", "verl": "verl", "trl": "TRL", "bench": "bench"}
KEY_LINES_A_STEP = 10
_TOLD = ("flow.construction.", "judge.refit_timing.dominates")
_NOTHING_ASKED = ("planned_steps", "artifacts")
_NOT_REACHED = (
    "judge.completion.no-metrics",
    "judge.artifacts.missing",
    "judge.checks.failed",
    "judge.provenance.unseen",
    "judge.backend.no-config",
    "judge.refit_timing.missing",
    "judge.learning_signal.missing",
)


def build(run: Run, baseline: Run | None = None) -> Report:
    """The report of a run as it stands now; an unfinished run is Incomplete.

    ``baseline`` is another run, whose metrics and resolved configuration are shown beside this one's.
    """
    plan = run.plan
    results = step_results(plan, run)
    steps = {step.id: step for step in plan.steps}
    events = run.journal.read()
    ends = [event["time"] for event in events if event["event"] == "run_finished"]
    verdict = _overall(plan, results)
    if not ends and verdict in (Verdict.PASS, Verdict.BLOCKED):
        verdict = Verdict.INCOMPLETE
    answers = answered(run, results)
    beside = (*no_graph_findings(run), *against_findings(run, answers))
    findings = (*plan.findings, *run.preflight_findings(), *isolation_findings(run), *beside)
    deliverables = tuple(
        (msgspec.structs.replace(line, detail=_from_run(line.detail, run)), ids)
        for line, ids in _deliverables(run, plan, results)
    )
    return Report(
        result=verdict,
        summary=_from_run(_summary(verdict, steps, results, answers), run),
        model=plan.model,
        requested_coverage=tuple(dict.fromkeys(step.coverage for step in plan.steps)),
        deliverables=tuple(deliverable for deliverable, _ in deliverables),
        deliverable_steps=tuple(ids for _, ids in deliverables),
        evidence=(*_evidence(run, plan, steps, results), *isolation_evidence(run), *map(_cited, beside)),
        limitations=(*_limitations(run, plan, results), *no_graph_limitations(run)),
        follow_ups=tuple(_from_run(text, run) for text in _follow_ups(results, findings)) or ("none",),
        attributions=answers,
        steps=results,
        levels=plan.levels,
        findings=findings,
        substitutions=plan.substitutions,
        run=RunInfo(
            id=run.layout.id,
            directory=str(run.layout.root),
            started=events[0]["time"] if events else 0.0,
            finished=ends[-1] if ends else 0.0,
            version=__version__,
        ),
        **details(run, plan, results, baseline, _name(baseline)),
    )


def _name(baseline: Run | None) -> str:
    if baseline is None:
        return ""
    return f"{baseline.layout.id} ({_overall(baseline.plan, step_results(baseline.plan, baseline)).value})"


def _overall(plan: Plan, results: Iterable[StepResult]) -> Verdict:
    """The verdict of the run; a requested level that got no step proves nothing, and keeps it from a Pass."""
    levels: dict[tuple[str, int], list[Verdict]] = {
        (level.loop, level.level): [] for level in plan.levels if level.requested
    }
    for result in results:
        levels.setdefault((result.coverage.loop, result.coverage.level), []).append(result.verdict)
    return overall(levels.values())


def _from_run(text: str, run: Run) -> str:
    """Places in the run directory as they are named from it."""
    return text.replace(f"{run.layout.root}/", "")


def _cited(finding: Finding) -> Citation:
    return Citation(what=finding.what, where=finding.where)


def _summary(
    verdict: Verdict,
    steps: dict[str, Step],
    results: tuple[StepResult, ...],
    answers: tuple[Attribution, ...] = (),
) -> str:
    of_this_verdict = [result for result in results if result.verdict is verdict]
    if verdict is Verdict.INCOMPLETE:
        done = sum(result.verdict is not Verdict.INCOMPLETE for result in results)
        return f"{done} of {len(results)} steps have a verdict; nothing is claimed of the rest"
    said = [claim(steps[result.id], result) + told(answers, result.id) for result in of_this_verdict]
    return "; ".join(said) or "no step was run"


def _deliverables(
    run: Run, plan: Plan, results: tuple[StepResult, ...]
) -> Iterable[tuple[Deliverable, tuple[str, ...]]]:
    """Each deliverable with the ids of the steps whose evidence stands behind it."""
    steps, checkouts = {step.id: step for step in plan.steps}, run.checkouts()
    bridge_tests = [result for result in results if result.coverage.variant == BRIDGE_TESTS]
    for loop in dict.fromkeys(step.coverage.loop for step in plan.steps):
        of_loop = [
            result
            for result in results
            if result.coverage.loop == loop and result.coverage.variant != BRIDGE_TESTS
        ]
        name = LOOP_NAMES.get(loop, loop)
        smoke = [result for result in of_loop if result.coverage.level == 0]
        others = [result for result in of_loop if result.coverage.level > 0]
        yield bridge_checks(checkouts, steps, results), _ids(bridge_tests)
        imported = local_import(
            loop, name, checkouts, results, run.preflight_findings(), str(run.layout.root)
        )
        yield imported, _ids(result for result in of_loop if result.attempts)
        yield _level_line(f"{name} policy run", smoke, plan, loop), _ids(smoke)
        yield _level_line("Requested variants", others, plan, loop), _ids(others)
        yield _capture_line(of_loop, steps), _ids(result for result in of_loop if result.attempts)
    for level in plan.levels:
        if not level.requested and not any(step.coverage.loop == level.loop for step in plan.steps):
            name = f"{LOOP_NAMES.get(level.loop, level.loop)} loop"
            yield Deliverable(name=name, verdict=Verdict.NOT_REQUESTED, detail=level.reason), ()


def _ids(results: Iterable[StepResult]) -> tuple[str, ...]:
    return tuple(result.id for result in results)


def _level_line(name: str, results: list[StepResult], plan: Plan, loop: str) -> Deliverable:
    if not results:
        others = [level for level in plan.levels if level.loop == loop and not level.requested]
        return Deliverable(name=name, verdict=Verdict.NOT_REQUESTED, detail=_reasons(others))
    steps = {step.id: step for step in plan.steps}
    detail = "; ".join(claim(steps[result.id], result) for result in results)
    return Deliverable(name=name, verdict=worst(result.verdict for result in results), detail=detail)


def _reasons(levels: list[LevelRequest]) -> str:
    return "; ".join(dict.fromkeys(level.reason for level in levels)) or "not asked for"


def _capture_line(results: list[StepResult], steps: dict[str, Step]) -> Deliverable:
    """Whether log and metrics of every training run were captured; failing checks are the step's own."""
    name = "Metrics/log capture"
    attempted = [result for result in results if result.attempts]
    training = [result for result in attempted if steps[result.id].planned_steps is not None]
    if not attempted:
        return Deliverable(name=name, verdict=Verdict.SKIPPED, detail="no step was started")
    parts = []
    for result in training or attempted:
        last = result.attempts[-1]
        held = sum(row.passed for row in last.checks)
        where = f"attempts/{last.directory}"
        parts.append(
            f"{where}/run.log, {where}/metrics.json, {held} of {len(last.checks)} metric checks hold"
        )
    without = [result for result in training if result.attempts[-1].last_step is None]
    if not without:
        return Deliverable(name=name, verdict=Verdict.PASS, detail="; ".join(parts))
    stopped = all(result.verdict is Verdict.BLOCKED for result in without)
    reason = "the environment stopped the run before any metric" if stopped else "no metrics were found"
    verdict = Verdict.BLOCKED if stopped else Verdict.FAIL
    return Deliverable(name=name, verdict=verdict, detail=f"{reason}; {'; '.join(parts)}")


def _evidence(
    run: Run, plan: Plan, steps: dict[str, Step], results: tuple[StepResult, ...]
) -> Iterable[Citation]:
    yield from repositories(run.checkouts())
    for loop in dict.fromkeys(step.coverage.loop for step in plan.steps):
        if loop == "bench":
            yield Citation(what="bench loop", text=f"proveout {__version__}")
    for result in results:
        for attempt in result.attempts[-1:]:
            script = f"attempts/{attempt.directory}/command.sh"
            command = steps[result.id].command.at(f"attempts/{attempt.directory}")
            yield Citation(what="Command", where=Where(file=script), text=shlex.join(command.argv))
            yield from launched(attempt)
            yield from (_inside(cited, attempt, run) for cited in _key_lines(attempt))


def _key_lines(attempt: AttemptResult) -> Iterable[Citation]:
    if attempt.triage is not None and attempt.triage.cause is not None:
        yield attempt.triage.cause
    for finding in attempt.findings:
        if finding.id.startswith(_TOLD):
            text = finding.evidence[0].text if finding.evidence else ""
            yield Citation(what=finding.what, where=finding.where, text=text)
    shown = [finding for finding in deciding(attempt) if not _follows(finding, attempt)]
    for finding in shown[:KEY_LINES_A_STEP]:
        yield Citation(what=finding.what, where=finding.where)
        yield from finding.evidence[:1]
    telling = tuple(cited for cited in attempt.held if cited.where.key not in _NOTHING_ASKED)
    yield from _joined(telling)[:KEY_LINES_A_STEP]


def _follows(finding: Finding, attempt: AttemptResult) -> bool:
    """Whether a finding only follows from the stop that triage explains: what was not reached is not there."""
    explained = attempt.triage is not None and attempt.triage.cause is not None and not attempt.exit.ok
    return explained and attempt.last_step is None and finding.id in _NOT_REACHED


def _joined(held: tuple[Citation, ...]) -> list[Citation]:
    """Citations that show the same thing as one: the texts in a row, the place of the first."""
    same: dict[str, list[Citation]] = {}
    for cited in held:
        same.setdefault(cited.what, []).append(cited)
    return [
        msgspec.structs.replace(
            group[0],
            text="; ".join(cited.text for cited in group if cited.text),
            where=group[0].where if len(group) == 1 else Where(file=group[0].where.file),
        )
        for group in same.values()
    ]


def _inside(cited: Citation, attempt: AttemptResult, run: Run) -> Citation:
    """The citation with its file named from the run directory, where it lies there."""
    if cited.where.file is None:
        return cited
    path = run.layout.attempts / attempt.directory / cited.where.file
    if not path.is_relative_to(run.layout.root):
        return cited
    where = msgspec.structs.replace(cited.where, file=str(path.relative_to(run.layout.root)))
    return msgspec.structs.replace(cited, where=where)


def _limitations(run: Run, plan: Plan, results: tuple[StepResult, ...]) -> tuple[str, ...]:
    skipped = [f"{r.coverage} was skipped: {r.reason}" for r in results if r.verdict is Verdict.SKIPPED]
    reruns = [f"{r.coverage} took {len(r.attempts)} attempts" for r in results if len(r.attempts) > 1]
    shown = [text for result in results for text in _shown_by_configuration(run, plan, result)]
    noise = [
        text for r in results for last in r.attempts[-1:] for text in noise_limitations(str(r.coverage), last)
    ]
    return tuple(dict.fromkeys((*plan.limitations, *shown, *plan.substitutions, *skipped, *reruns, *noise)))


def _shown_by_configuration(run: Run, plan: Plan, result: StepResult) -> tuple[str, ...]:
    """What the configuration that the last attempt itself printed or saved leaves untested."""
    step = next(step for step in plan.steps if step.id == result.id)
    if not result.attempts or step.config is None:
        return ()
    files = AttemptLayout(run.layout.attempts / result.attempts[-1].directory)
    config, _ = read_config(with_kept(step, files).config, files.root)
    found = limits.limitations(step.coverage.loop, config or {})
    return tuple(f"{step.coverage}: {text}" for text in found if text not in plan.limitations)


def _follow_ups(results: tuple[StepResult, ...], findings: tuple[Finding, ...]) -> Iterable[str]:
    texts = [
        finding.remedy
        for finding in findings
        if finding.remedy and (finding.decides or finding.id.startswith("flow.against."))
    ]
    for result in results:
        for attempt in result.attempts[-1:]:
            texts += [attempt.triage.remedy] if attempt.triage is not None else []
            told = [f for f in deciding(attempt) if f.remedy and not _follows(f, attempt)]
            plain = attempt.triage is not None and attempt.triage.cause is not None
            texts += [f"{f.id}: {f.remedy}" for f in told if not (plain and f.id == "judge.exit.status")]
        if result.verdict is Verdict.INCOMPLETE:
            texts.append("'proveout resume' goes on with the steps that are left")
    yield from dict.fromkeys(text for text in texts if text)
