"""Log: words that the console must hold, and words that it must not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Citation, Where
from proveout.judge import logtext, say


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``requires``: literals that some line must hold, each of them; ``excludes``: literals that none may."""

    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all((*self.requires, *self.excludes)) or not (self.requires or self.excludes):
            raise ValueError("at least one literal is needed, and none may be empty")


def log(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every required literal stands on the log and no excluded one; a log that cannot be read is an ERROR."""
    wanted = msgspec.convert(dict(params), Params)
    first: dict[str, Citation] = {}
    try:
        for line in logtext.scan(logtext.log_path(evidence), (*wanted.requires, *wanted.excludes)):
            for words in (*wanted.requires, *wanted.excludes):
                if words in line.text and words not in first:
                    first[words] = say.log_line(evidence.log, line.number, line.text, f"{words!r} on the log")
    except OSError as error:
        unread = say.error(
            "log.unreadable", f"the log cannot be read: {error.strerror}", where=Where(file=evidence.log)
        )
        return CriterionResult(kind="log", findings=(unread,))
    findings = [
        say.error("log.missing", f"no line of the log says {words!r}", where=Where(file=evidence.log))
        for words in wanted.requires
        if words not in first
    ]
    findings += [
        say.error("log.excluded", f"the log says {words!r}", evidence=(first[words],))
        for words in wanted.excludes
        if words in first
    ]
    held = [first[words] for words in wanted.requires if words in first]
    if wanted.excludes and not findings:
        held.append(Citation(what="none of the excluded lines", where=Where(file=evidence.log)))
    return CriterionResult(kind="log", findings=tuple(findings), held=tuple(held))
