"""Whether the provider was constructed when a run stopped: what comes before is no evidence against a change."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from proveout.domain import redact
from proveout.domain.finding import Citation, Where
from proveout.triage.catalog import STAGES
from proveout.triage.lines import plain, segment
from proveout.triage.reader import blocks, open_log
from proveout.triage.stages import HEAD, markers

_BEGINS = "provider_build"
_LONGEST_TEXT = 300


class Reached(StrEnum):
    """How far a run came. BEGUN: construction began and nothing shows its end; UNKNOWN: no stage is shown."""

    BUILT = "built"
    BEGUN = "begun"
    BEFORE = "before"
    UNKNOWN = "unknown"


class Construction(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, the stage of the line that shows it, and that line; ``shown`` is None where there is none."""

    reached: Reached
    stage: str = ""
    shown: Citation | None = None


def construction(logs: Sequence[Path], last_step: int | None = None) -> Construction:
    """How far the logs show that the run came; ``last_step`` is the last training step of its metrics.

    The first line that only a constructed provider leads to decides; else the first that begins its construction;
    else the last of an earlier stage. Raises UsageError for a log that cannot be read.
    """
    found = markers()
    sure = {stage: found.stages[stage] for stage in sorted(found.after_provider)}
    sure["constructed"] = found.provider_built
    earlier = {
        stage: found.stages[stage] for stage in STAGES[: STAGES.index(_BEGINS)] if stage in found.stages
    }
    begun: Construction | None = None
    before: Construction | None = None
    for path in logs:
        with open_log(path) as stream:
            for block in blocks(stream):
                if block.offset > HEAD:
                    break
                text = block.data
                if hit := _first(sure, text, path, block.line):
                    return Construction(reached=Reached.BUILT, stage=hit[0], shown=hit[1])
                if begun is None and (
                    hit := _first({_BEGINS: found.stages[_BEGINS]}, text, path, block.line)
                ):
                    begun = Construction(reached=Reached.BEGUN, stage=_BEGINS, shown=hit[1])
                if hit := _last(earlier, text, path, block.line):
                    before = Construction(reached=Reached.BEFORE, stage=hit[0], shown=hit[1])
    if last_step:
        cite = Citation(what="training was recorded", where=Where(step=last_step))
        return Construction(reached=Reached.BUILT, stage="train_step", shown=cite)
    return begun or before or Construction(reached=Reached.UNKNOWN)


def _first(patterns: dict[str, Any], data: bytes, path: Path, line: int) -> tuple[str, Citation] | None:
    hits = [(match.start(), stage) for stage, one in patterns.items() if (match := one.search(data))]
    return _cited(*min(hits), data, path, line) if hits else None


def _last(patterns: dict[str, Any], data: bytes, path: Path, line: int) -> tuple[str, Citation] | None:
    hits = [(match.start(), stage) for stage, one in patterns.items() for match in one.finditer(data)]
    return _cited(*max(hits), data, path, line) if hits else None


def _cited(at: int, stage: str, data: bytes, path: Path, line: int) -> tuple[str, Citation]:
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    raw = data[start : end if end >= 0 else len(data)]
    text = redact.text(plain(segment(raw, at - start)).strip())[:_LONGEST_TEXT]
    where = Where(file=str(path), line=line + data.count(b"\n", 0, start))
    return stage, Citation(what=f"stage {stage}", where=where, text=text)
