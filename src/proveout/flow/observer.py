"""What the flow tells whoever watches it; the command line prints it, tests collect it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from proveout.domain.evidence import AttemptResult, StepResult
from proveout.domain.finding import Finding
from proveout.domain.layout import AttemptLayout
from proveout.domain.step import Plan, Step
from proveout.store.runs import Run


class ProgressState(msgspec.Struct, kw_only=True):
    """How far a running attempt is: training step and total, last values, seconds, console phase."""

    seconds: float = 0.0
    step: int | None = None
    total: int | None = None
    reward: float | None = None
    loss: float | None = None
    phase: str = "starting"


class Observer(Protocol):
    """Is told what happens, in order; must not raise."""

    def planned(self, run: Run, plan: Plan) -> None:
        """A run directory exists and holds the plan."""

    def preflighted(self, findings: tuple[Finding, ...]) -> None:
        """Preflight is done."""

    def started(self, step: Step, number: int, files: AttemptLayout) -> None:
        """An attempt began, or one was found that still runs."""

    def progress(self, step: Step, state: ProgressState) -> None:
        """An attempt goes on; called a few times a second at most."""

    def judged(self, step: Step, result: AttemptResult) -> None:
        """An attempt ended and has its verdict."""

    def settled(self, step: Step, result: StepResult) -> None:
        """A step has its verdict, with or without an attempt."""


class Silent:
    """An observer that keeps what it is told to itself."""

    def planned(self, run: Run, plan: Plan) -> None:
        """Nothing."""

    def preflighted(self, findings: tuple[Finding, ...]) -> None:
        """Nothing."""

    def started(self, step: Step, number: int, files: AttemptLayout) -> None:
        """Nothing."""

    def progress(self, step: Step, state: ProgressState) -> None:
        """Nothing."""

    def judged(self, step: Step, result: AttemptResult) -> None:
        """Nothing."""

    def settled(self, step: Step, result: StepResult) -> None:
        """Nothing."""
