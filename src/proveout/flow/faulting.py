"""Puts known faults into real runs of the bench loop and records what the judge makes of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from proveout import loops
from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Boundary, Finding, Severity
from proveout.domain.layout import STATE_DIR
from proveout.domain.loop import LoopContext
from proveout.domain.step import LevelRequest, Plan, Step
from proveout.domain.verdict import Verdict
from proveout.flow.evidence import gather, related_to
from proveout.flow.execute import Policy, execute
from proveout.flow.fault_files import prepare
from proveout.flow.observer import Silent
from proveout.flow.warm import refuse_gone, warm_server, warmed
from proveout.judge.functional import catches
from proveout.launch import launch_for
from proveout.loops.bench.backends import backend_of, environment_of, python_of
from proveout.loops.bench.faults import RESUME, Fault, chosen
from proveout.store.runs import Run, create

FAULTS = "faults"
_SYMPTOMS = ("judge.exit", "judge.completion", "judge.artifacts")
_NO_BOUNDARY = (None, Boundary.NONE, Boundary.UNKNOWN, Boundary.NOISE)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one fault.

    ``caught``: the run did not pass; ``boundary`` the one that was named, ``right`` whether it is the expected one;
    ``finding`` is what caught it, at ``step`` of the training where it has one; ``functional_checks_catch`` whether the
    matching functional test of NeMo-RL would have failed; ``reason`` why the fault cannot be seen at its level.
    """

    fault: str
    group: str
    level: int
    variant: str
    verdict: Verdict
    caught: bool
    boundary: Boundary | None
    expected: tuple[Boundary, ...]
    right: bool
    finding: str
    what: str
    step: int | None
    functional_checks_catch: bool
    reason: str = ""
    run: str = ""


def steps_of(fault: Fault, context: LoopContext) -> tuple[Step, ...]:
    """The steps of the fault's run, the fault in the one that carries it."""
    sound = msgspec.structs.replace(context, overrides=(*context.overrides, *fault.extra))
    request = LevelRequest(
        loop="bench", level=fault.level, requested=True, reason=fault.id, variant=fault.step
    )
    return tuple(
        _with(step, fault) if _carries(step, fault) else step
        for step in loops.get("bench").steps(request, sound)
    )


def inject(
    only: Iterable[str],
    *,
    context: LoopContext,
    state_dir: Path | None,
    told: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run the faults of these ids or groups (all for none) and tell each outcome as it is known.

    Raises UsageError for a fault or backend that is not known, BlockedError where the bench loop does not start.
    """
    faults = [fault.with_backend(backend_of(context)) for fault in chosen(only)]
    root = (state_dir or Path(STATE_DIR)).absolute() / FAULTS
    outcomes = []
    with warm_server(context) as variable:
        for outcome in run_faults(faults, context, root, variable):
            outcomes.append(outcome)
            told(outcome)
    return outcomes


def run_faults(
    faults: Iterable[Fault], context: LoopContext, root: Path, variable: dict[str, str]
) -> Iterator[Outcome]:
    """Run each fault under ``root``, started from the server that ``variable`` names unless it must be fresh."""
    policy = Policy(launch=launch_for())
    own_path = environment_of(context).get("PYTHONPATH") or os.environ.get("PYTHONPATH", "")
    for fault in faults:
        if fault.not_for:
            yield _left_out(fault)
            continue
        folder = root / fault.id
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        prepare(fault.prepare, folder, python_of(context))
        settings = {"fault_dir": str(folder), "pythonpath": own_path}
        steps = tuple(_filled(step, settings) for step in steps_of(fault, context))
        if not fault.fresh:
            steps = tuple(warmed(step, variable) for step in steps)
        request = LevelRequest(
            loop="bench", level=fault.level, requested=True, reason=fault.what, variant=fault.step
        )
        run = create(folder, Plan(model="tiny", levels=(request,), steps=steps))
        with run.held():
            results = execute(run, policy, Silent())
        refuse_gone(results)
        yield _outcome(fault, run, steps, results)


def _left_out(fault: Fault) -> Outcome:
    return Outcome(
        fault=fault.id,
        group=fault.group,
        level=fault.level,
        variant=fault.step,
        verdict=Verdict.SKIPPED,
        caught=False,
        boundary=None,
        expected=fault.boundary,
        right=False,
        finding="",
        what="",
        step=None,
        functional_checks_catch=False,
        reason=f"not for this backend: {fault.not_for}",
    )


def _carries(step: Step, fault: Fault) -> bool:
    if fault.stage == "save":
        return step.coverage.variant.endswith("save")
    return step.coverage.variant == fault.step or (fault.step == RESUME and step.coverage.variant == RESUME)


def _with(step: Step, fault: Fault) -> Step:
    command = msgspec.structs.replace(
        step.command, argv=(*step.command.argv, *fault.words), env=step.command.env | fault.env
    )
    resources = step.resources
    if fault.timeout_s is not None:
        resources = msgspec.structs.replace(resources, timeout_minutes=fault.timeout_s / 60)
    return msgspec.structs.replace(step, command=command, resources=resources)


def _filled(step: Step, settings: dict[str, str]) -> Step:
    def fill(text: str) -> str:
        for name, value in settings.items():
            text = text.replace("{" + name + "}", value)
        return text

    command = msgspec.structs.replace(
        step.command,
        argv=tuple(fill(word) for word in step.command.argv),
        env={name: fill(value).rstrip(":") for name, value in step.command.env.items()},
    )
    return msgspec.structs.replace(step, command=command)


def _outcome(fault: Fault, run: Run, steps: tuple[Step, ...], results: tuple[StepResult, ...]) -> Outcome:
    judged = [result for result in results if result.verdict is not Verdict.SKIPPED]
    failed = next((result for result in judged if result.verdict is not Verdict.PASS), None)
    last = failed or judged[-1]
    attempt = last.attempts[-1] if last.attempts else None
    error = _deciding(attempt)
    boundary = _boundary(attempt, error)
    return Outcome(
        fault=fault.id,
        group=fault.group,
        level=fault.level,
        variant=fault.step,
        verdict=last.verdict,
        caught=failed is not None,
        boundary=boundary,
        expected=fault.boundary,
        right=boundary in fault.boundary,
        finding=error.id if error is not None else "",
        what=error.what if error is not None else "",
        step=_step_of(error) if error is not None else None,
        functional_checks_catch=_functional(run, {step.id: step for step in steps}),
        reason=fault.invisible,
        run=str(run.layout.root),
    )


def _deciding(attempt: AttemptResult | None) -> Finding | None:
    """The most telling ERROR: with a boundary, at the earliest training step; that it ended early comes last."""
    errors = (
        [finding for finding in attempt.findings if finding.severity is Severity.ERROR] if attempt else []
    )
    return min(errors, key=_telling, default=None)


def _telling(finding: Finding) -> tuple[bool, bool, float]:
    step = _step_of(finding)
    return (
        finding.id.startswith(_SYMPTOMS),
        finding.boundary in _NO_BOUNDARY,
        float("inf") if step is None else step,
    )


def _boundary(attempt: AttemptResult | None, error: Finding | None) -> Boundary | None:
    """The deciding finding's where the command ended well, as metrics alone show the fault; else triage's."""
    if attempt is None:
        return None
    named = error.boundary if error is not None else None
    triaged = attempt.triage.boundary if attempt.triage is not None else None
    for boundary in (named, triaged) if attempt.exit.ok else (triaged, named):
        if boundary not in _NO_BOUNDARY:
            return boundary
    return None


def _step_of(finding: Finding) -> int | None:
    places = (finding.where, *(cite.where for cite in finding.evidence))
    return next((where.step for where in places if where.step is not None), None)


def _functional(run: Run, steps: dict[str, Step]) -> bool:
    results = run.results()
    for number, step_id, files in run.attempts():
        step, judged = steps[step_id], {result.number: result for result in results.get(step_id, ())}
        if number in judged:
            evidence = gather(step, number, files, judged[number].exit, related_to(step, run, steps))
            if catches(evidence):
                return True
    return False
