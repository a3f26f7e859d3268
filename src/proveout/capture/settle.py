"""Turns the points of one or more readings into ordered series and shows where records disagree."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import lt
from typing import TypeVar

from proveout.capture.reading import Points, Reading
from proveout.domain.metrics import Conflict, MetricTable, Series

_MANY = 10_000
T = TypeVar("T", int, float)
Order = tuple[Sequence[int], list[tuple[int, int]]]


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
    if _ascending(steps):
        return Series(steps, values, wall, source)
    order = _few if len(steps) < _MANY else _many
    kept, clashes = order(steps, values)
    begins = list(accumulate((len(points) for _, points in parts), initial=0))
    for place, keeps in clashes:
        name = parts[bisect_right(begins, place) - 1][0]
        conflicts.append(Conflict(tag, steps[place], values[keeps], values[place], name))
    return Series(_pick(steps, kept), _pick(values, kept), _pick(wall, kept), source)


def _ascending(steps: array[int]) -> bool:
    """Whether every step is later than the one before."""
    return all(map(lt, memoryview(steps), memoryview(steps)[1:]))


def _pick(column: array[T], places: Sequence[int]) -> array[T]:
    return array(column.typecode, map(column.__getitem__, places))


def _few(steps: array[int], values: array[float]) -> Order:
    """Places to keep, by step, and the places whose value differs with the place kept instead."""
    last = {step: place for place, step in enumerate(steps)}
    clashes = [
        (place, last[step])
        for place, step in sorted(enumerate(steps), key=lambda pair: pair[1])
        if differ(values[place], values[last[step]])
    ]
    return [last[step] for step in sorted(last)], clashes


def _many(steps: array[int], values: array[float]) -> Order:
    """The same for many points."""
    import numpy as np

    order = np.argsort(np.frombuffer(steps, np.int64), kind="stable")
    by_step = np.frombuffer(steps, np.int64)[order]
    is_last = np.append(by_step[1:] != by_step[:-1], True)
    keeps = order[is_last][np.cumsum(is_last) - is_last]
    found = np.frombuffer(values, np.float64)
    one, other = found[order], found[keeps]
    clash = (one != other) & ~(np.isnan(one) & np.isnan(other))
    return order[is_last].tolist(), list(zip(order[clash].tolist(), keeps[clash].tolist(), strict=True))
