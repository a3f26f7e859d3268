"""A plan and its steps: one command for one deliverable, with what it must leave and how it is judged."""

from __future__ import annotations

from typing import Any

import msgspec

from proveout.domain.finding import Finding

ATTEMPT_DIR = "{attempt_dir}"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """A level of a loop, and the variant of it."""

    loop: str
    level: int
    variant: str = "default"

    def __str__(self) -> str:
        return f"{self.loop} level {self.level} ({self.variant})"


class LevelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan says of one level: wanted or not, why, and which changed paths ask for it."""

    loop: str
    level: int
    requested: bool
    reason: str
    variant: str = "default"
    paths: tuple[str, ...] = ()


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How a step is started. ``{attempt_dir}`` in argv, env values and cwd stands for its attempt directory.

    ``env`` is added to the caller's environment; ``unset`` names variables that are taken out of it.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    cwd: str = ATTEMPT_DIR

    def at(self, attempt_dir: str) -> Command:
        """This command for one attempt directory."""
        return Command(
            argv=tuple(word.replace(ATTEMPT_DIR, attempt_dir) for word in self.argv),
            env={key: value.replace(ATTEMPT_DIR, attempt_dir) for key, value in self.env.items()},
            unset=self.unset,
            cwd=self.cwd.replace(ATTEMPT_DIR, attempt_dir),
        )


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a step needs. ``minutes`` is the expected wall time, ``timeout_minutes`` when it is stopped."""

    gpus: int = 0
    nodes: int = 1
    minutes: float = 1.0
    timeout_minutes: float = 60.0


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file or directory (or glob) that an attempt must leave, newer than its start.

    ``path`` is relative to the attempt directory unless absolute.
    """

    path: str
    what: str
    min_bytes: int = 1


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where metrics or a configuration stand: a reader's name, and a path or glob like an artifact's."""

    format: str
    path: str


MetricSource = Source


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """A pass criterion as data: the judge's registered name for it and its parameters."""

    kind: str
    params: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One command to run for one deliverable.

    ``claim`` is what a pass may be said to have validated; ``planned_steps`` the last training step that the
    metrics must show (None where the step does not train); ``config`` is where the resolved configuration
    stands; ``skip_reason`` makes it Skipped without a run; ``substitutions`` say what stands in for something
    that the checkout no longer has.
    """

    id: str
    coverage: Coverage
    deliverable: str
    claim: str
    command: Command
    resources: Resources = Resources()
    planned_steps: int | None = None
    artifacts: tuple[Artifact, ...] = ()
    metrics: tuple[MetricSource, ...] = ()
    config: Source | None = None
    criteria: tuple[Criterion, ...] = ()
    limitations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    skip_reason: str = ""
    substitutions: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The levels with their reasons and the ordered steps. ``needs`` of a step name steps that come first."""

    model: str
    levels: tuple[LevelRequest, ...]
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()
    substitutions: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
