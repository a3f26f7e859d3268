"""Whose failure it is: a step that did not pass, run again on the commit that the change is compared with."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from proveout.domain.verdict import Verdict


class Answer(StrEnum):
    """What the runs on both sides show together. UNDECIDED: they do not show one of the four."""

    NEW = "new failure"
    PRE_EXISTING = "pre-existing"
    FLAKY = "flaky"
    ENVIRONMENT = "environment"
    UNDECIDED = "undecided"


class Side(StrEnum):
    """Which tree a run had on its search path: the change, or the commit before it."""

    CHANGE = "change"
    BASE = "base"


class SideRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the step: ``directory`` within the run directory, the verdict by the step's own criteria."""

    side: Side
    directory: str
    verdict: Verdict
    findings: tuple[str, ...] = ()
    cause: str = ""


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is to be compared with: a commit of the checkout of ``role`` at ``path``.

    ``repeat`` is how often each side runs, at most, before a failure that only the change shows is called new.
    """

    role: str
    path: str
    revision: str
    commit: str
    repeat: int = 2


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one step; its own verdict stays what it is."""

    step: str
    attempt: str
    verdict: Verdict
    role: str
    commit: str
    answer: Answer
    summary: str
    runs: tuple[SideRun, ...] = ()
    repeat: int = 1
