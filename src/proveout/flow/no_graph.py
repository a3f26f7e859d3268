"""Megatron generation that stopped on an illegal memory access, once more without CUDA graphs.

The failure stays a failure of Megatron generation with CUDA graphs; a pass without them is an
optimisation-reduced pass, told as a limitation. Both logs are kept.
"""

from __future__ import annotations

from proveout.capture.config import read_config
from proveout.domain.errors import BlockedError
from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Citation, Finding, Severity, Where
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Step
from proveout.domain.verdict import Verdict
from proveout.flow.against_answer import cause_of
from proveout.flow.beside import Beside
from proveout.flow.evidence import related_to
from proveout.flow.execute import step_results
from proveout.flow.observer import Observer
from proveout.flow.provenance import imports_of
from proveout.launch import Launch
from proveout.store.runs import Run
from proveout.triage.ladders import load
from proveout.triage.rungs import Applied, apply, effect

KIND = "no-graph"
RUNG = "cuda-graphs-off"
_LOOP = "nemo-rl"
_BACKEND = "policy.generation.backend"
_SIGNATURE = "illegal-memory-access"
_DONE = "no_graph_judged"


def rerun_without_graphs(run: Run, launch: Launch, observer: Observer) -> None:
    """Run every step with that signature once more without CUDA graphs; one that was run so already is not."""
    known = {(event["step"], event["attempt"]) for event in _told(run)}
    steps = {step.id: step for step in run.plan.steps}
    beside = Beside(run, KIND, run.layout.without_graphs, launch, observer)
    for result in step_results(run.plan, run):
        step = steps[result.id]
        if not _fits(step, result) or (step.id, result.attempts[-1].directory) in known:
            continue
        failed = result.attempts[-1]
        applied = _without(run, step, failed)
        fields = {"step": step.id, "attempt": failed.directory}
        if applied.step is None:
            run.journal.append(_DONE, **fields, directory="", passed=False, why=applied.reason)
            continue
        try:
            found = beside.once_more(applied.step, related_to(step, run, steps), imports_of(run, step))
        except BlockedError as error:
            run.journal.append(_DONE, **fields, directory="", passed=False, why=str(error))
            continue
        files = AttemptLayout(run.layout.without_graphs / found.directory)
        config, _ = read_config(applied.step.config, files.root)
        missing = effect(applied.values, config)
        run.journal.append(
            _DONE,
            **fields,
            directory=found.directory,
            passed=found.verdict is Verdict.PASS and not missing,
            why=missing or cause_of(found),
        )


def _fits(step: Step, result: StepResult) -> bool:
    if step.coverage.loop != _LOOP or result.verdict is not Verdict.FAIL or not result.attempts:
        return False
    triage = result.attempts[-1].triage
    expected = [item.params["expected"] for item in step.criteria if item.kind == "backend"]
    megatron = any(values.get(_BACKEND) == "megatron" for values in expected)
    return megatron and triage is not None and triage.subkind == _SIGNATURE


def _without(run: Run, step: Step, failed: AttemptResult) -> Applied:
    """The step without CUDA graphs, by the rung that isolation climbs too; or why it cannot be had."""
    config, _ = read_config(step.config, run.layout.attempts / failed.directory)
    return apply(load().rungs[RUNG].loops[_LOOP], step, config)


def no_graph_findings(run: Run) -> tuple[Finding, ...]:
    """One notice for each step that was run once more; the step's verdict rests on its attempts alone."""
    return tuple(_notice(run, event) for event in _told(run))


def no_graph_limitations(run: Run) -> tuple[str, ...]:
    """The optimisation-reduced passes, as the report limits its claims by them."""
    return tuple(
        f"{event['step']}: an optimisation-reduced pass: it passes with CUDA graphs off ({_log(run, event)}); "
        f"with them it stays a failure of Megatron generation with CUDA graphs ({_failed_log(run, event)})"
        for event in _told(run)
        if event["passed"]
    )


def _notice(run: Run, event: dict[str, object]) -> Finding:
    what = f"{event['step']} stopped on an illegal memory access in Megatron generation"
    if event["passed"]:
        what += "; without CUDA graphs it passes: CUDA graphs of Megatron generation fail"
    elif event["directory"]:
        what += f"; without CUDA graphs it does not pass either: {event['why']}"
    else:
        what += f"; it was not run without CUDA graphs: {event['why']}"
    logs = [Citation(what="with CUDA graphs", where=Where(file=_failed_log(run, event)))]
    logs += [Citation(what="without CUDA graphs", where=Where(file=_log(run, event)))] * bool(
        event["directory"]
    )
    return Finding(
        id="flow.no-graph." + ("passes" if event["passed"] else "no-pass"),
        severity=Severity.NOTICE,
        what=what,
        where=logs[-1].where,
        evidence=tuple(logs),
    )


def _told(run: Run) -> list[dict[str, object]]:
    return [event for event in run.journal.read() if event["event"] == _DONE]


def _log(run: Run, event: dict[str, object]) -> str:
    return f"{run.layout.without_graphs.name}/{event['directory']}/run.log"


def _failed_log(run: Run, event: dict[str, object]) -> str:
    return f"{run.layout.attempts.name}/{event['attempt']}/run.log"
