"""What preflight is asked about: the run that somebody is about to start here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.step import Command, Step


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter that will run part of a loop.

    ``argv`` starts it (``python`` alone or a prefix such as ``env python``); ``env`` is added to the
    environment of the run; ``cwd`` is where it starts; ``loop`` is the loop that it belongs to.
    """

    name: str
    argv: tuple[str, ...]
    loop: str = ""
    env: dict[str, str] = {}
    cwd: str = ""


class PreflightContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a check may look at.

    ``run_dir`` need not exist yet; ``checkouts`` maps a role (bridge, mcore, nemo-rl, verl) to its path;
    ``env`` is the environment that steps start from; ``workers`` names interpreters to ask instead of those
    that a loop's own rules give; ``model`` is a path or ``ORG/NAME``; ``image`` is what the containers are made
    from that the run starts its steps in, '' where it starts none; ``settings`` replaces limits and
    switches of the checks by their dotted names. ``memo`` keeps what several checks share; nobody else
    writes it.
    """

    run_dir: str
    loops: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    checkouts: dict[str, str] = {}
    env: dict[str, str] = {}
    workers: tuple[Worker, ...] = ()
    model: str | None = None
    image: str = ""
    gpus: int = 0
    python: str = sys.executable
    settings: dict[str, str] = {}
    memo: dict[str, Any] = {}

    @property
    def running(self) -> tuple[Step, ...]:
        """The steps that will run: those that are not skipped."""
        return tuple(step for step in self.steps if not step.skip_reason)

    @property
    def wanted(self) -> frozenset[str]:
        """The loops that the run uses: those named and those of the steps."""
        return frozenset(self.loops) | {step.coverage.loop for step in self.running}

    def commands(self, loop: str) -> tuple[Command, ...]:
        """The commands of one loop's steps, in order."""
        return tuple(step.command for step in self.running if step.coverage.loop == loop)

    def environment(self, loop: str = "") -> dict[str, str]:
        """The environment that the first training step of ``loop`` would see, or its first step; else the run's.

        Tests that come before a loop (the Bridge's own) run in an environment of their own.
        """
        seen = dict(self.env)
        mine = sorted(
            (step for step in self.running if step.coverage.loop == loop),
            key=lambda step: not step.planned_steps,
        )
        for command in [step.command for step in mine][:1]:
            seen.update(command.env)
            for name in command.unset:
                seen.pop(name, None)
        return seen

    def environments(self) -> dict[str, Mapping[str, str]]:
        """The environment of each loop that is wanted, by loop; of the run alone where none is."""
        return {loop: self.environment(loop) for loop in sorted(self.wanted)} or {"": self.env}
