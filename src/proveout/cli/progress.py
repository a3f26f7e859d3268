"""Shows a run as it goes: one redrawn line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time

import click

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Finding, Severity
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Plan, Step
from proveout.flow.observer import ProgressState
from proveout.store.runs import Run

PLAIN_EVERY_SECONDS = 5.0
MANY_STEPS = 12


class ConsoleObserver:
    """Prints to standard error, so that standard output holds the report alone."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last_plain = 0.0
        self._width = 0

    def planned(self, run: Run, plan: Plan) -> None:
        steps = ", ".join(str(step.coverage) for step in plan.steps[:MANY_STEPS])
        if len(plan.steps) > MANY_STEPS:
            steps += f" and {len(plan.steps) - MANY_STEPS} more"
        self._line(f"run {run.layout.id}: {steps}")
        self._line(f"evidence in {run.layout.root}")

    def preflighted(self, findings: tuple[Finding, ...]) -> None:
        worth = [finding for finding in findings if finding.severity is not Severity.NOTICE]
        self._line(f"preflight: {len(worth) or 'nothing'} to report")
        for finding in worth:
            self._line(f"  {finding.severity.value}: {finding.what}")

    def started(self, step: Step, number: int, files: AttemptLayout) -> None:
        self._last_plain = time.monotonic()
        self._line(f"{step.coverage}: attempt {number} started")

    def progress(self, step: Step, state: ProgressState) -> None:
        text = f"{step.coverage}: {_state(state)}"
        if self._terminal:
            self._redraw(text)
        elif time.monotonic() - self._last_plain >= PLAIN_EVERY_SECONDS:
            self._last_plain = time.monotonic()
            self._line(text)

    def judged(self, step: Step, result: AttemptResult) -> None:
        for finding in result.findings:
            if finding.severity is not Severity.NOTICE:
                self._line(f"  {finding.severity.value}: {finding.what} [{finding.where}]")

    def settled(self, step: Step, result: StepResult) -> None:
        reason = f" - {result.reason}" if result.reason else ""
        self._line(f"{step.coverage}: {result.verdict.value}{reason}")

    def _line(self, text: str) -> None:
        self._redraw("")
        click.echo(text, err=True)

    def _redraw(self, text: str) -> None:
        if self._terminal and (text or self._width):
            width = shutil.get_terminal_size().columns
            shown = text[: width - 1]
            click.echo("\r" + shown.ljust(self._width) + ("\r" if not shown else ""), nl=False, err=True)
            self._width = len(shown)


def _state(state: ProgressState) -> str:
    parts = [f"step {state.step}/{state.total}" if state.step is not None else state.phase]
    parts += [f"reward {state.reward:.3f}"] if state.reward is not None else []
    parts.append(f"{state.seconds:.0f} s")
    if state.step and state.total and state.step < state.total:
        parts.append(f"about {state.seconds / state.step * (state.total - state.step):.0f} s left")
    return ", ".join(parts)
