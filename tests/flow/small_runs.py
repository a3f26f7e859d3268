"""Runs whose steps are one-line programs: the flow around them is the real one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Finding
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Command, Coverage, Plan, Resources, Step
from proveout.flow.observer import ProgressState
from proveout.store.runs import Run, create


class Told:
    """Remembers what the flow told; ``on_progress`` may interrupt."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.verdicts: dict[str, str] = {}

    def planned(self, run: Run, plan: Plan) -> None: ...

    def preflighted(self, findings: tuple[Finding, ...]) -> None: ...

    def started(self, step: Step, number: int, files: AttemptLayout) -> None:
        self.begun.append(step.id)

    def progress(self, step: Step, state: ProgressState) -> None:
        self.on_progress(step)

    def on_progress(self, step: Step) -> None: ...

    def judged(self, step: Step, result: AttemptResult) -> None: ...

    def settled(self, step: Step, result: StepResult) -> None:
        self.verdicts[step.id] = result.verdict.value


def small(name: str, code: str, *, needs: tuple[str, ...] = (), resources: Resources | None = None) -> Step:
    """A step that runs ``code`` with Python in its attempt directory; exit status 0 passes."""
    return Step(
        id=name,
        coverage=Coverage(loop="bench", level=0, variant=name),
        deliverable=name,
        claim=f"{name} ran",
        command=Command(argv=(sys.executable, "-c", code)),
        resources=resources or Resources(timeout_minutes=1),
        needs=needs,
    )


def small_run(root: Path, steps: Iterable[Step]) -> Run:
    """A run of these steps."""
    return create(root, Plan(model="none", levels=(), steps=tuple(steps)))
