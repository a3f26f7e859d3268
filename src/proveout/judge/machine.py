"""Series that measure the machine (time, memory, utilisation), not the training."""

from __future__ import annotations

from fnmatch import fnmatchcase

_PATTERNS = (
    *("ray/*", "timing/*", "timing_s/*", "timing_per_token_ms/*", "performance/*", "perf/*", "actor/perf/*"),
    *("critic/perf/*", "*/step_time", "step_time", "*_runtime", "*_per_second"),
)


def is_machine(tag: str, also: tuple[str, ...] = ()) -> bool:
    """Whether ``tag`` measures the machine, by name; ``also`` are further globs."""
    return any(fnmatchcase(tag, pattern) for pattern in (*_PATTERNS, *also))
