"""What a loop is to the rest of proveout."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from proveout.domain.finding import Finding
from proveout.domain.step import LevelRequest, Step


class LoopContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop needs to build its steps.

    ``python`` is the interpreter that runs the loop; ``checkouts`` maps a role (bridge, mcore, nemo-rl, verl)
    to its path; ``options`` are the loop's own settings by name (backend, platform, ...); ``overrides`` are
    ``key=value`` words passed on to the loop as they are.
    """

    python: str
    model: str | None = None
    checkouts: dict[str, str] = {}
    gpus: int = 0
    seed: int = 0
    options: dict[str, str] = {}
    overrides: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How a loop's console shows progress, as RE2 patterns with named groups.

    ``step`` has the groups ``step`` and ``total``; ``reward`` and ``loss`` have ``value``; ``phases`` maps a
    phase name to the pattern of the line that begins it.
    """

    step: str
    reward: str = ""
    loss: str = ""
    phases: dict[str, str] = {}


class Loop(Protocol):
    """An RL training loop that runs the change. One package under ``loops`` and one line in its registry."""

    name: str
    levels: dict[int, str]
    default_levels: tuple[int, ...]
    default_model: str
    progress: Progress

    def check(self, context: LoopContext) -> tuple[Finding, ...]:
        """What makes this loop impossible to run here or its options wrong, before anything runs.

        Raises UsageError for an option, override or model that is wrong.
        """
        ...

    def steps(self, request: LevelRequest, context: LoopContext) -> tuple[Step, ...]:
        """The ordered steps of one requested level."""
        ...


@runtime_checkable
class ChoosingLoop(Protocol):
    """A loop whose levels by default depend on its options."""

    def levels_by_default(self, context: LoopContext) -> tuple[int, ...]:
        """What is run where nobody names a level."""
        ...


@runtime_checkable
class VerifiedLoop(Protocol):
    """A loop that runs from a checkout, and can tell from its files whether a step would be accepted
    there."""

    def verify(self, step: Step, context: LoopContext) -> tuple[Finding, ...]:
        """What in ``step`` this checkout would reject, ignore or not run, from its files alone."""
        ...
