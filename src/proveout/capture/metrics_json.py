"""Writes a metric table as JSON: ``{tag: {"step": value}}``.

JSON has no NaN: it is written as the string "NaN", infinities as "Infinity" and "-Infinity". Python's
``float()`` reads all three back, as does the ``nemo-json`` reader.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

import msgspec

from proveout.domain.metrics import MetricTable, Series


def write_metrics_json(table: MetricTable, path: Path) -> None:
    """Write ``table`` under another name in the same directory and rename it to ``path``. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            _write(table, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write(table: MetricTable, file: BinaryIO) -> None:
    for place, tag in enumerate(table.tags()):
        name = json.dumps(tag).encode()
        file.write((b"{\n  " if place == 0 else b",\n  ") + name + b": " + _object(table.series[tag]))
    file.write(b"\n}" if table.series else b"{}")


def _object(series: Series) -> bytes:
    if not series:
        return b"{}"
    points = dict(series)
    encoded = msgspec.json.encode(points if all(map(math.isfinite, series.values)) else _quoted(points))
    return b"{\n    " + encoded[1:-1].replace(b',"', b',\n    "').replace(b'":', b'": ') + b"\n  }"


def _quoted(points: dict[int, float]) -> dict[int, float | str]:
    return {step: value if math.isfinite(value) else word(value) for step, value in points.items()}


def word(value: float) -> str:
    """The string that stands for a value that JSON cannot hold."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
