"""Centre and spread that a few bad runs do not move, and which way a metric gets worse."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from statistics import median

import msgspec

MAD_TO_SIGMA = 1.4826
"""Makes the median absolute deviation agree with the standard deviation of normal values: 1 / Phi^-1(3/4)."""


class Worse(StrEnum):
    """Which way a metric gets worse."""

    HIGHER = "higher"
    LOWER = "lower"
    EITHER = "either"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Some values: how many, median, robust standard deviation (1.4826 MAD), lowest and highest."""

    runs: int
    median: float
    sigma: float
    low: float
    high: float


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When a value has moved: further from the median of the last ``last`` earlier ones than ``sigmas`` robust
    standard deviations and than ``min_change`` of the median's size; undecided with fewer than ``at_least``."""

    last: int = 20
    at_least: int = 5
    sigmas: float = 4.0
    min_change: float = 0.1


def spread(values: Sequence[float]) -> Spread:
    """The spread of finite values, one at least."""
    centre = median(values)
    deviation = median(abs(value - centre) for value in values)
    return Spread(
        runs=len(values), median=centre, sigma=MAD_TO_SIGMA * deviation, low=min(values), high=max(values)
    )


def band(of: Spread, rule: Rule) -> float:
    """How far from the median a value may lie and still count as steady."""
    return max(rule.sigmas * of.sigma, rule.min_change * abs(of.median))


def finite(values: Sequence[float | None]) -> list[float]:
    """The values that are numbers."""
    return [value for value in values if value is not None and math.isfinite(value)]


def worse_of(tag: str) -> Worse:
    """Which way a tag gets worse, by ``ways.toml``: the first pattern that fits; EITHER where none does."""
    for way, patterns in _ways():
        if any(fnmatchcase(tag, pattern) for pattern in patterns):
            return way
    return Worse.EITHER


@cache
def _ways() -> tuple[tuple[Worse, tuple[str, ...]], ...]:
    table = tomllib.loads((files(__package__) / "ways.toml").read_text(encoding="utf-8"))
    return tuple((Worse(way), tuple(patterns)) for way, patterns in table.items())
