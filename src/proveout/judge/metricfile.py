"""Metrics as JSON: ``{tag: {"step": value}}``, results files with single values, and golden files.

Bare ``NaN`` and ``Infinity`` are read as well as the texts "NaN", "Infinity" and "-Infinity"; null is a NaN.
Golden files keep every digit and write non-finite values as texts, so that they are valid JSON.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.metrics import MetricTable, Series
from proveout.judge.expressions.data import Data, Scalar, View
from proveout.judge.tolerance import Tolerance

GOLDEN = "proveout golden metrics"
_VERSION = 1


class MetricFile(NamedTuple):
    """What a file held: series with steps, everything else by name, and the tolerances of a golden file."""

    table: MetricTable
    other: dict[str, View | Scalar]
    tolerances: dict[str, Tolerance]

    @property
    def data(self) -> Data:
        """As ``data`` of metric expressions."""
        return Data(self.table, self.other)


def load(path: Path) -> MetricFile:
    """The metrics of a JSON file.

    Raises UsageError, with line and column or tag, for a file that cannot be read or is something else.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"not UTF-8 text: {error.reason} at byte {error.start}", where=str(path)) from None
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise UsageError(f"not JSON: {error.msg}", where=place, remedy="give a metrics.json") from None
    except RecursionError:
        raise UsageError("not a metrics file: nested too deeply", where=str(path)) from None
    except ValueError as error:
        raise UsageError(str(error), where=str(path)) from None
    if not isinstance(raw, dict):
        raise UsageError("not a metrics file: an object of tags was expected", where=str(path))
    try:
        return _golden(raw, path) if raw.get("format") == GOLDEN else _plain(raw, path)
    except (ValueError, OverflowError, msgspec.ValidationError) as error:
        raise UsageError(str(error), where=str(path)) from None


def save_golden(path: Path, table: MetricTable, tolerances: Mapping[str, Tolerance], source: str) -> None:
    """Write ``table`` as a golden file (renamed into place): every digit, one tag a line.

    Raises UsageError where the file cannot be written.
    """
    lines = [
        f"    {json.dumps(tag)}: {json.dumps(_entry(series, tolerances.get(tag)), allow_nan=False)}"
        for tag, series in sorted(table.series.items())
    ]
    head = {"format": GOLDEN, "version": _VERSION, "source": source}
    text = json.dumps(head)[:-1] + ', "tags": {\n' + ",\n".join(lines) + "\n}}\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _entry(series: Series, tolerance: Tolerance | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "steps": list(series.steps),
        "values": [value if math.isfinite(value) else _name(value) for value in series.values],
    }
    return entry | (msgspec.to_builtins(tolerance) if tolerance is not None else {})


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _golden(raw: dict[str, Any], path: Path) -> MetricFile:
    if raw.get("version") != _VERSION:
        raise ValueError(f"golden file of version {raw.get('version')!r}; version {_VERSION} is known")
    series, tolerances = {}, {}
    for tag, entry in raw.get("tags", {}).items():
        points = {int(s): _number(v) for s, v in zip(entry["steps"], entry["values"], strict=True)}
        series[tag] = Series.of(points, str(path))
        given = {key: entry[key] for key in ("rtol", "atol") if key in entry}
        if given:
            tolerances[tag] = msgspec.convert(given, Tolerance)
    return MetricFile(MetricTable(series), {}, tolerances)


def _plain(raw: dict[str, Any], path: Path) -> MetricFile:
    series: dict[str, Series] = {}
    other: dict[str, View | Scalar] = {}
    for tag, value in raw.items():
        if isinstance(value, dict):
            points = {key: _number(v, tag) for key, v in value.items()}
            steps = [_step(key) for key in points]
            if all(step is not None for step in steps):
                stepped = {s: v for s, v in zip(steps, points.values(), strict=True) if s is not None}
                series[tag] = Series.of(stepped, str(path))
            else:
                other[tag] = View(tag, list(points), list(points.values()), str(path))
        elif isinstance(value, list):
            other[tag] = View(tag, list(range(len(value))), [_number(v, tag) for v in value], str(path))
        else:
            other[tag] = value
    return MetricFile(MetricTable(series), other, {})


def _step(key: str) -> int | None:
    try:
        return int(key)
    except ValueError:
        return None


def _number(value: Any, tag: str = "") -> float:
    if value is None:
        return math.nan
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise ValueError(f"{tag or 'a value'} holds {str(value)[:40]!r}, which is no number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object: which of them counts cannot be told")
    return found
