"""The report's lines on how an attempt was started, where that was not as a plain process of this machine."""

from __future__ import annotations

from collections.abc import Iterable

from proveout.domain.evidence import AttemptResult
from proveout.domain.finding import Citation, Where

PLAIN = ("local", "process")


def launched(attempt: AttemptResult) -> Iterable[Citation]:
    """One line: scheduler and launcher, and what they said of themselves (image, digest, job, node)."""
    record = attempt.launch
    if record is None or (record.scheduler, record.launcher) == PLAIN:
        return
    facts = "; ".join(f"{name} {value}" for name, value in record.facts.items())
    yield Citation(
        what="Launched by",
        where=Where(file=f"attempts/{attempt.directory}/launch.json"),
        text=f"scheduler {record.scheduler}, launcher {record.launcher}" + (f": {facts}" if facts else ""),
    )
