"""Trend of a short, noisy series without any assumption on its distribution.

Mann-Kendall test: H. B. Mann (1945), M. G. Kendall (1975), with the variance corrected for ties and the
continuity correction. Slope: P. K. Sen (1968), with the confidence interval of R. O. Gilbert, "Statistical
Methods for Environmental Pollution Monitoring" (1987), section 16.4.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import msgspec


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """``slope`` is the median change a step (Theil-Sen), ``low`` and ``high`` its confidence interval.

    ``tau`` is Kendall's S over its largest value; ``p_up`` and ``p_down`` are the one-sided probabilities of
    an S at least this far up or down if nothing trends; ``values`` is how many values were tested.
    """

    values: int
    slope: float
    low: float
    high: float
    tau: float
    p_up: float
    p_down: float


def blocks(steps: Sequence[float], values: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """The series as at most ``most`` means of neighbouring points; itself when it is short enough."""
    if len(values) <= most:
        return list(steps), list(values)
    cuts = [round(place * len(values) / most) for place in range(most + 1)]
    spans = [(a, b) for a, b in pairwise(cuts) if b > a]
    return (
        [math.fsum(steps[a:b]) / (b - a) for a, b in spans],
        [math.fsum(values[a:b]) / (b - a) for a, b in spans],
    )


def trend(steps: Sequence[float], values: Sequence[float], confidence: float = 0.95) -> Trend:
    """Mann-Kendall test and Theil-Sen slope of finite ``values`` at strictly increasing ``steps``.

    ``confidence`` is that of the slope's interval. Raises ValueError for fewer than 3 values.
    """
    import numpy as np

    count = len(values)
    if count < 3:
        raise ValueError(f"a trend needs 3 values, not {count}")
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(count, k=1)
    rises = y[second] - y[first]
    s = float(np.sign(rises).sum())
    _, ties = np.unique(y, return_counts=True)
    spread = count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    sigma = math.sqrt(max(spread, 0.0) / 18)
    slopes = np.sort(rises / (x[second] - x[first]))
    low, high = _interval(slopes.tolist(), sigma, confidence)
    return Trend(
        values=count,
        slope=float(np.median(slopes)),
        low=low,
        high=high,
        tau=s / len(first),
        p_up=_tail(s, sigma),
        p_down=_tail(-s, sigma),
    )


def _tail(s: float, sigma: float) -> float:
    if sigma == 0:
        return 1.0
    continuity = (s > 0) - (s < 0)
    return 1.0 - NormalDist().cdf((s - continuity) / sigma)


def _interval(slopes: list[float], sigma: float, confidence: float) -> tuple[float, float]:
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * sigma
    below = max(math.floor((len(slopes) - reach) / 2) - 1, 0)
    above = min(math.ceil((len(slopes) + reach) / 2), len(slopes) - 1)
    return slopes[below], slopes[above]
