"""Turns the points of one or more readings into ordered series and shows where records disagree."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from operator import lt

from proveout.capture.reading import Points, Reading
from proveout.domain.metrics import Conflict, MetricTable, Series


def differ(one: float, other: float) -> bool:
    """Whether two values disagree; NaN agrees with NaN."""
    return one != other and not (math.isnan(one) and math.isnan(other))


def settle(readings: Sequence[Reading]) -> MetricTable:
    """One table from the readings of one run, in order: where a step repeats, the later record is kept.

    Every repeated step whose values differ is in ``conflicts``; NaN agrees with NaN.
    """
    table = MetricTable()
    for tag in {tag: None for reading in readings for tag in reading.points}:
        parts = [(reading.source, reading.points[tag]) for reading in readings if tag in reading.points]
        table.series[tag] = _series(tag, parts, table.conflicts)
    return table


def _series(tag: str, parts: list[tuple[str, Points]], conflicts: list[Conflict]) -> Series:
    source = parts[-1][0]
    if len(parts) == 1 and _ascending(parts[0][1].steps):
        only = parts[0][1]
        return Series(only.steps, only.values, only.wall, source)
    steps, values, wall = array("q"), array("d"), array("d")
    for _, points in parts:
        steps.extend(points.steps)
        values.extend(points.values)
        wall.extend(points.wall)
    if not _ascending(steps):
        steps, values, wall = _ordered(tag, parts, (steps, values, wall), conflicts)
    return Series(steps, values, wall, source)


def _ascending(steps: array[int]) -> bool:
    return all(map(lt, memoryview(steps), memoryview(steps)[1:]))


def _ordered(
    tag: str,
    parts: list[tuple[str, Points]],
    joined: tuple[array[int], array[float], array[float]],
    conflicts: list[Conflict],
) -> tuple[array[int], array[float], array[float]]:
    import numpy as np

    steps, values, wall = (np.frombuffer(column, column.typecode) for column in joined)
    order = np.argsort(steps, kind="stable")
    by_step = steps[order]
    last = np.append(by_step[1:] != by_step[:-1], True)
    group = np.cumsum(last) - last
    kept = order[last]
    found, keeps = values[order], values[kept][group]
    clash = (found != keeps) & ~(np.isnan(found) & np.isnan(keeps))
    begins = np.cumsum([0, *(len(points) for _, points in parts)])
    for place in np.flatnonzero(clash).tolist():
        part = int(np.searchsorted(begins, order[place], side="right")) - 1
        conflicts.append(
            Conflict(tag, int(by_step[place]), float(keeps[place]), float(found[place]), parts[part][0])
        )
    out: tuple[array[int], array[float], array[float]] = (array("q"), array("d"), array("d"))
    out[0].frombytes(steps[kept].tobytes())
    out[1].frombytes(values[kept].tobytes())
    out[2].frombytes(wall[kept].tobytes())
    return out
