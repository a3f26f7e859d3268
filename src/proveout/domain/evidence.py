"""What an attempt left behind, and what was made of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from proveout.domain.finding import Boundary, Citation, Finding
from proveout.domain.metrics import MetricTable
from proveout.domain.step import Coverage, Step
from proveout.domain.verdict import Verdict


class End(StrEnum):
    """How an attempt ended, as its launcher saw it.

    EVICTED: the scheduler or the machine ended it (time limit of the site, node failure, preemption, disk full).
    LOST: nobody saw it end.
    """

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not started"
    EVICTED = "ended by the machine"
    LOST = "lost"


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended: ``code`` when it exited, ``signal`` when one killed it.

    ``started`` is in epoch seconds of the file system's clock, which also dates the artifacts; ``finished`` minus
    ``started`` is how long it took. ``skew`` is how many seconds the clock of the attempt's own host, which dates
    log lines and metric records, is ahead of that. ``launcher`` names scheduler and launcher.
    """

    end: End
    code: int | None = None
    signal: int | None = None
    started: float = 0.0
    finished: float = 0.0
    launcher: str = "local+process"
    detail: str = ""
    skew: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it exited by itself with status 0."""
        return self.end is End.EXITED and self.code == 0

    def __str__(self) -> str:
        match self.end:
            case End.EXITED:
                return f"exit status {self.code}"
            case End.SIGNALLED:
                return f"killed by signal {self.signal}"
            case _:
                return self.end.value + (f": {self.detail}" if self.detail else "")


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt was started: ``facts`` are what a report should say of it (image, digest, job, node)."""

    scheduler: str
    launcher: str
    facts: dict[str, str] = {}


class ArtifactState(msgspec.Struct, frozen=True, kw_only=True):
    """A declared artifact as it was found: newest modification time (epoch seconds) and total bytes."""

    path: str
    what: str
    exists: bool
    modified: float = 0.0
    size: int = 0
    min_bytes: int = 1


class ImportRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which file a module was imported from, and by whom (driver, worker, probe)."""

    module: str
    path: str
    importer: str = "driver"
    where: Citation | None = None


class Evidence(msgspec.Struct, kw_only=True):
    """All that one attempt left: the judge reads nothing else.

    ``attempt_dir`` is absolute; ``log`` is the captured console (run.log); ``extra_logs`` are read by triage
    beside it; ``config`` is the resolved configuration as the loop printed or saved it, flattened to dotted
    keys; ``findings`` are what reading the evidence itself showed (a corrupt event file, a conflict);
    ``related`` holds the evidence of the steps that this one ``needs``, by step id.
    """

    step: Step
    attempt: int
    attempt_dir: str
    exit: ExitRecord
    log: str
    metrics: MetricTable
    artifacts: tuple[ArtifactState, ...] = ()
    imports: tuple[ImportRecord, ...] = ()
    config: dict[str, Any] | None = None
    extra_logs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    related: dict[str, Evidence] = {}


class CheckRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a metric check table. ``value`` is printed as it was compared."""

    check: str
    passed: bool
    value: str
    message: str = ""


class CriterionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one criterion said: findings where it does not hold, citations of what shows that it does."""

    kind: str
    findings: tuple[Finding, ...] = ()
    held: tuple[Citation, ...] = ()
    checks: tuple[CheckRow, ...] = ()


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's answer for one attempt."""

    verdict: Verdict
    results: tuple[CriterionResult, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the criteria."""
        return tuple(finding for result in self.results for finding in result.findings)


class TriageResult(msgspec.Struct, frozen=True, kw_only=True):
    """Which boundary failed, the line that caused it, and what follows.

    ``aftermath`` and ``noise`` are lines that the cause explains or that mean nothing;
    ``undecided_because`` says what would decide it when ``boundary`` is unknown.
    """

    boundary: Boundary
    verdict: Verdict
    subkind: str = ""
    stage: str = ""
    confidence: str = "none"
    cause: Citation | None = None
    aftermath: tuple[Citation, ...] = ()
    noise: tuple[Citation, ...] = ()
    remedy: str = ""
    undecided_because: str = ""


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, judged: what ``result.json`` of its directory holds."""

    number: int
    directory: str
    verdict: Verdict
    exit: ExitRecord
    findings: tuple[Finding, ...] = ()
    held: tuple[Citation, ...] = ()
    checks: tuple[CheckRow, ...] = ()
    last_step: int | None = None
    triage: TriageResult | None = None
    launch: LaunchRecord | None = None


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """A step and all its attempts; its verdict is that of the last attempt."""

    id: str
    coverage: Coverage
    verdict: Verdict
    reason: str = ""
    attempts: tuple[AttemptResult, ...] = ()
