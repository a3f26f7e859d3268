"""How far two values may lie apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``|a - b| <= atol + rtol * |b|``, b being the baseline; nothing finite is near a NaN or an infinity."""

    rtol: float = 0.0
    atol: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is a finite number of 0 or more, not {value!r}")

    def holds(self, value: float, baseline: float) -> bool:
        """Whether ``value`` is as near to ``baseline`` as asked; never for what is not finite."""
        if not (math.isfinite(value) and math.isfinite(baseline)):
            return False
        return abs(value - baseline) <= self.atol + self.rtol * abs(baseline)

    def __str__(self) -> str:
        return f"rtol {self.rtol:g}, atol {self.atol:g}"


EXACT = Tolerance()


def of_tag(tag: str, tolerances: Mapping[str, Tolerance], default: Tolerance = EXACT) -> Tolerance:
    """The tolerance of ``tag``: its own, else the first glob that matches, else ``default``."""
    if tag in tolerances:
        return tolerances[tag]
    return next((t for pattern, t in tolerances.items() if fnmatchcase(tag, pattern)), default)
