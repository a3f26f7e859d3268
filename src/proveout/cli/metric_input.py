"""Metrics that a command is given: a JSON file, or anything that a reader of capture knows."""

from __future__ import annotations

from pathlib import Path

from proveout.domain.errors import UsageError
from proveout.judge.metricfile import MetricFile, load


def read_metric_file(path: Path) -> MetricFile:
    """The metrics at ``path``: a metrics JSON, a golden file, or whatever ``capture.read_any`` recognises.

    Raises UsageError where it is none of them.
    """
    try:
        head = b"" if path.is_dir() else _head(path)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if head.lstrip()[:1] == b"{" and b'"log_history"' not in head:
        try:
            return load(path)
        except UsageError as error:
            if ": not JSON" not in str(error):
                raise
            return _other(path, error)
    return _other(path, None)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(65536)


def _other(path: Path, why: UsageError | None) -> MetricFile:
    from proveout.capture.metrics import read_any

    try:
        table, _ = read_any(path)
    except UsageError:
        raise why or UsageError(
            "not a metrics file that is known", where=str(path), remedy="give a metrics.json or an event file"
        ) from None
    return MetricFile(table, {}, {})
