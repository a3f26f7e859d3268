"""One diagnosis: the only type in which preflight, judge and triage say that something is wrong."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from proveout.domain.verdict import Verdict


class Severity(StrEnum):
    """NOTICE informs, WARNING limits what may be claimed, ERROR decides the verdict."""

    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


class Boundary(StrEnum):
    """The boundary at fault, in the labels of the triage cases; NONE for a run that shows no failure."""

    ENVIRONMENT = "environment"
    PROVIDER = "provider"
    TRAINER = "trainer"
    GENERATION = "generation"
    NUMERICS = "numerics"
    OOM_GPU = "oom-gpu"
    HANG = "hang"
    INCOMPLETE = "incomplete"
    NOISE = "noise"
    UNKNOWN = "unknown"
    NONE = "none"


class Where(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a finding or a citation points: a file and line, a configuration key, a metric and step."""

    file: str | None = None
    line: int | None = None
    offset: int | None = None
    key: str | None = None
    metric: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}"
        if self.offset is not None:
            place += f" at byte {self.offset}"
        parts = [place] if place else []
        parts += [f"key {self.key}"] if self.key else []
        parts += [self.metric] if self.metric else []
        parts += [f"step {self.step}"] if self.step is not None else []
        return ", ".join(parts)


class Citation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence: what it shows, where it stands, and the text as it was printed."""

    what: str
    where: Where = Where()
    text: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One diagnosis.

    ``id`` is ``room.criterion.what`` and stable; ``verdict`` is what an ERROR makes of the step (Fail where
    nothing is given); ``remedy`` says what to do; ``evidence`` cites what shows it.
    """

    id: str
    severity: Severity
    what: str
    where: Where = Where()
    remedy: str = ""
    boundary: Boundary | None = None
    verdict: Verdict | None = None
    evidence: tuple[Citation, ...] = ()

    @property
    def decides(self) -> Verdict | None:
        """The verdict that this finding forces on its step, or None."""
        if self.severity is not Severity.ERROR:
            return None
        return self.verdict or Verdict.FAIL
