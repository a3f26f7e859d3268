"""Runs the steps of a plan that are left, as many at once as the budget allows, and settles each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from proveout.domain.evidence import StepResult
from proveout.domain.step import Plan
from proveout.flow.known import known, reasons_of
from proveout.flow.observer import Observer
from proveout.flow.policy import Budget, Policy, Slots
from proveout.flow.side_by_side import Execution
from proveout.store.runs import Run

__all__ = ["Budget", "Policy", "execute", "execute_all", "step_results"]

POLL_SECONDS = 0.1
MANY = 16
MANY_SECONDS = 1.0


def execute(run: Run, policy: Policy, observer: Observer) -> tuple[StepResult, ...]:
    """Run every step that has no final verdict yet.

    Ctrl-C stops the running attempts with their children, leaves the rest Incomplete and is raised again.
    """
    execute_all([run], policy, observer)
    return step_results(run.plan, run)


def execute_all(runs: Sequence[Run], policy: Policy, observer: Observer) -> None:
    """The same for several runs that share one budget. Ctrl-C stops all of them."""
    slots = Slots(policy.budget, policy.launch.scheduler.name)
    executions = [Execution(run, policy, observer, slots) for run in runs]
    try:
        while open_ones := [execution for execution in executions if execution.go_on()]:
            running = sum(execution.running for execution in open_ones)
            time.sleep(MANY_SECONDS if running > MANY else POLL_SECONDS)
    except KeyboardInterrupt:
        for execution in executions:
            execution.stop()
        raise


def step_results(plan: Plan, run: Run) -> tuple[StepResult, ...]:
    """What is known of every step of the plan, run or not."""
    judged, reasons = run.results(), reasons_of(run.journal.read())
    return tuple(known(step, judged.get(step.id, ()), reasons) for step in plan.steps)
