"""What isolation left: re-runs of a failed step with one thing changed. Never evidence for a pass."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from proveout.domain.finding import Boundary
from proveout.domain.verdict import Verdict


class Rerun(StrEnum):
    """What one re-run showed. NO_EFFECT: its resolved configuration does not show the change.

    BLOCKED: the loop under test never ran with the change: its checkout rejects it, or the re-run was Blocked, or
    ran other code.
    """

    PLANNED = "planned"
    FLIPPED = "flipped"
    SAME = "fails the same"
    OTHER = "fails otherwise"
    NO_EFFECT = "change without effect"
    UNFINISHED = "unfinished"
    BLOCKED = "blocked"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an isolation ended. UNDECIDED: nothing flipped, but some re-run did not come to its own end or was
    blocked.
    """

    ISOLATED = "isolated"
    NOT_ISOLATED = "not isolated"
    NOT_REPEATABLE = "not repeatable"
    UNDECIDED = "undecided"
    BUDGET_SPENT = "budget spent"
    NOTHING_TO_TRY = "nothing to try"
    INTERRUPTED = "interrupted"


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One rung: the command as it ran (or would run), where it ran, and what that showed.

    ``verdict`` is that of the re-run by the step's own criteria; it is not the step's verdict.
    """

    rung: str
    title: str
    rerun: Rerun
    command: str = ""
    directory: str = ""
    verdict: Verdict | None = None
    reason: str = ""


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """One isolation of one failed step. ``verdict`` is the step's own, which isolation never changes.

    ``rung`` is the one that flipped the outcome; ``proves`` and ``does_not_prove`` are empty without one.
    """

    step: str
    attempt: str
    verdict: Verdict
    boundary: Boundary
    subkind: str
    stage: str
    ladders: tuple[str, ...]
    outcome: Outcome
    summary: str
    rung: str = ""
    proves: str = ""
    does_not_prove: str = ""
    limitation: str = ""
    tried: tuple[Tried, ...] = ()
    started: float = 0.0
    finished: float = 0.0
