"""Which stage a run reached, how far it came, and whether it said that it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from proveout.triage.cache import cached, read_yaml
from proveout.triage.catalog import STAGES, compile_pattern
from proveout.triage.lines import parse, segment
from proveout.triage.reader import BLOCK, blocks, open_log

_MARKERS = Path(__file__).with_name("markers.yaml")
HEAD = 16 * BLOCK
_WINDOWS = (1 << 13, 1 << 16, BLOCK)


class Markers:
    """The marker patterns, compiled."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.stages = {stage: _one_of(patterns) for stage, patterns in data["stages"].items()}
        self.any_stage = _one_of([p for patterns in data["stages"].values() for p in patterns])
        self.after_provider = frozenset(data["after_provider"])
        self.provider_built = _one_of(data["provider_built"])
        self.progress = [compile_pattern(pattern) for pattern in data["progress"]]
        self.any_progress = _one_of([_unnamed(pattern) for pattern in data["progress"]])
        self.planned = _one_of(data["planned"])
        self.completed = _one_of(data["completed"])
        ends = [*data["completed"], *data["exit_zero"], *data["exit_failed"], r"echo \$\?"]
        self.any_end = _one_of(pattern.removeprefix("^") for pattern in ends)
        self.exit_zero = _one_of(data["exit_zero"])
        self.exit_failed = _one_of(data["exit_failed"])

    def stage_of(self, line: bytes) -> str:
        """The latest stage that a line marks, or ""."""
        return next((stage for stage in reversed(STAGES) if self._marks(stage, line)), "")

    def _marks(self, stage: str, line: bytes) -> bool:
        pattern = self.stages.get(stage)
        return pattern is not None and pattern.search(line) is not None


@lru_cache(maxsize=1)
def markers() -> Markers:
    """The markers, read once."""
    return Markers(cached("markers", [_MARKERS], read_yaml, dict[str, Any]))


def _one_of(patterns: Iterable[str]) -> Any:
    return compile_pattern("|".join(f"(?:{pattern})" for pattern in patterns))


def _unnamed(pattern: str) -> str:
    return pattern.replace("(?P<step>", "(?:").replace("(?P<total>", "(?:")


def line_at(data: bytes, position: int) -> bytes:
    """The line around ``position``, of a bar that overwrites itself only the part around it."""
    start = data.rfind(b"\n", 0, position) + 1
    end = data.find(b"\n", position)
    raw = data[start : end if end >= 0 else len(data)]
    return segment(raw, position - start)


def last_stage(data: bytes) -> str:
    """The stage of the last marker in ``data``, or ""; looks at ever larger ends of it."""
    found = markers()
    for size in _WINDOWS:
        end = data[-size:]
        position = -1
        for match in found.any_stage.finditer(end):
            position = match.start()
        if position >= 0:
            return found.stage_of(line_at(end, position))
        if len(end) < size:
            break
    return ""


def last_mark(stage: str, data: bytes) -> int:
    """Where the last marker of one stage stands in ``data`` (byte), -1 where there is none."""
    pattern = markers().stages.get(stage)
    return max((match.start() for match in pattern.finditer(data)), default=-1) if pattern is not None else -1


def last_progress(data: bytes) -> tuple[int, int | None, int | None] | None:
    """Where the last finished step is printed in ``data`` (byte), its number, and the planned number."""
    found = markers()
    for size in _WINDOWS:
        end = data[-size:]
        position = -1
        for match in found.any_progress.finditer(end):
            position = match.start()
        if position >= 0:
            return (len(data) - len(end) + position, *_step_at(end, position))
        if len(end) < size:
            break
    return None


def steps_shown(data: bytes) -> list[int]:
    """Where finished steps are printed in ``data`` (bytes), in order."""
    return [match.start() for match in markers().any_progress.finditer(data)]


def _step_at(data: bytes, position: int) -> tuple[int | None, int | None]:
    for pattern in markers().progress:
        match = pattern.search(data[position : position + 600])
        if match is not None and match.start() == 0:
            groups = match.groupdict()
            step, total = groups.get(b"step"), groups.get(b"total")
            return int(step) if step else None, int(total) if total else None
    return None, None


def shows_provider(data: bytes) -> bool:
    """Whether a part of a log shows that the trainer's model was built."""
    return markers().provider_built.search(data) is not None


class StageTracker:
    """Fed with blocks from the start of a log: the set of stages reached, and whether the provider was built."""

    def __init__(self) -> None:
        self.reached: set[str] = set()
        self.built = False
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Look at one block, unless enough was seen."""
        if self._seen > HEAD or ("train_step" in self.reached and self.built):
            return
        self._seen += len(data)
        found = markers()
        for stage, pattern in found.stages.items():
            if stage not in self.reached and pattern.search(data):
                self.reached.add(stage)
        self.built = self.built or bool(self.reached & found.after_provider) or shows_provider(data)


def stages_reached(logs: Sequence[Path]) -> frozenset[str]:
    """The stages that the logs show, by their markers. Raises UsageError for a log that cannot be read."""
    return frozenset(_track(logs).reached)


def provider_constructed(logs: Sequence[Path]) -> bool:
    """Whether the logs show that the provider was built: what stops a run after that is not Blocked by default."""
    return _track(logs).built


def _track(logs: Sequence[Path]) -> StageTracker:
    tracker = StageTracker()
    for path in logs:
        with open_log(path) as stream:
            for block in blocks(stream):
                tracker.feed(block.data)
                if "train_step" in tracker.reached and tracker.built:
                    break
    return tracker


def end_marks(tail: bytes) -> tuple[int, int, int]:
    """Byte positions in ``tail`` of the last completion, exit-0 and exit-failed marker; -1 where there is none.

    ``$ echo $?`` followed by a number on its own line counts as an exit status.
    """
    found = markers()
    completed = zero = failed = -1
    seen = -1
    for hint in found.any_end.finditer(tail):
        start = tail.rfind(b"\n", 0, hint.start()) + 1
        if start == seen:
            continue
        seen = start
        raw = line_at(tail, hint.start())
        text = parse(raw, 0).text.strip().encode()
        status = _asked(tail, hint.end()) if text.endswith(b"echo $?") else b""
        if found.completed.search(text) or found.completed.search(raw):
            completed = start
        if found.exit_zero.search(text) or status == b"0":
            zero = start
        elif found.exit_failed.search(text) or status:
            failed = start
    return completed, zero, failed


def _asked(tail: bytes, position: int) -> bytes:
    """The number on the line after ``position``, or nothing."""
    start = tail.find(b"\n", position) + 1
    answer = line_at(tail, start).strip() if start else b""
    return answer if answer.isdigit() else b""
