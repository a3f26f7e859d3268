"""The functions that an expression may call.

``min max mean median ratio_above`` mean on finite data what NeMo-RL's ``tests/check_metrics.py`` documents:
ranges are by step, counted from 1, the end is exclusive, 0 is "through the last step", and a negative bound
counts back from the last step. The rest is proveout's own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from proveout.judge.expressions.data import Data, View
from proveout.judge.expressions.errors import ExpressionError

Numbers = View | Sequence[float]


def _numbers(value: Any, name: str) -> list[float]:
    if isinstance(value, View):
        numbers = value.values
    elif isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value):
        numbers = [float(v) for v in value]
    else:
        raise ExpressionError(f"{name}() needs a series or numbers, not {kind(value)}")
    if not numbers:
        raise ExpressionError(f"{name}() of no values")
    return numbers


def kind(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, View):
        return f"the series {value.tag}"
    if isinstance(value, Data):
        return "all of data"
    return {str: "a text", bool: "a truth value", type(None): "nothing"}.get(type(value), f"{value!r}")


def _series(value: Any, name: str) -> View:
    if not isinstance(value, View):
        raise ExpressionError(f"{name}() needs a series, not {kind(value)}")
    if not len(value):
        raise ExpressionError(f"{name}() of no values")
    if not value.stepped:
        raise ExpressionError(f"{name}() needs steps, and {value.tag} has names")
    return value


def real(value: Any, name: str) -> float:
    """``value`` as a number. Raises ExpressionError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"{name} needs a number, not {kind(value)}")
    return value


def _extreme(pick: Callable[[Iterable[float]], float], name: str) -> Callable[..., float]:
    def extreme(*values: Any) -> float:
        return pick(_numbers(values[0] if len(values) == 1 else values, name))

    return extreme


def ranged(value: View, start: Any = 1, end: Any = 0, name: str = "mean") -> list[float]:
    """Values of the steps from ``start`` up to but without ``end``; see the module's text for the bounds.

    Raises ExpressionError where no value lies in the range.
    """
    series = _series(value, name)
    first, behind = real(start, "range_start"), real(end, "range_end")
    last = max(key for key in series.keys if isinstance(key, int))
    first += last + 1 if first < 0 else 0
    behind += last + 1 if behind <= 0 else 0
    chosen = [
        v
        for k, v in zip(series.keys, series.values, strict=True)
        if isinstance(k, int) and first <= k < behind
    ]
    if not chosen:
        raise ExpressionError(
            f"{series.tag} has no value in steps {first:g} to {behind - 1:g} (its last is {last})"
        )
    return chosen


def _mean(value: Any, range_start: Any = 1, range_end: Any = 0, ignore_top_p: Any = 0.0) -> float:
    chosen = ranged(value, range_start, range_end) if isinstance(value, View) else _numbers(value, "mean")
    share = real(ignore_top_p, "ignore_top_p")
    if not 0.0 <= share <= 1.0:
        raise ExpressionError(f"ignore_top_p must lie between 0 and 1, not {share!r}")
    if share > 0.0:
        ordered = sorted(chosen)
        chosen = ordered[: int(len(ordered) * (1.0 - share))] or ordered[:1]
    return statistics.mean(chosen)


def _median(value: Any, range_start: Any = 1, range_end: Any = 0) -> float:
    if not isinstance(value, View):
        return statistics.median(_numbers(value, "median"))
    return statistics.median(ranged(value, range_start, range_end, "median"))


def _ratio_above(value: Any, threshold: Any) -> float:
    limit = real(threshold, "threshold")
    values = value.values if isinstance(value, View) else _numbers(value, "ratio_above")
    return sum(1 for v in values if v >= limit) / len(values) if values else 0.0


def _all_finite(value: Any) -> bool:
    return all(math.isfinite(v) for v in _numbers(value, "all_finite"))


def _first(value: Any) -> float:
    return _numbers(value, "first")[0]


def _last(value: Any) -> float:
    return _numbers(value, "last")[-1]


def _std(value: Any) -> float:
    numbers = _numbers(value, "std")
    if len(numbers) < 2:
        raise ExpressionError("std() needs two values")
    return statistics.stdev(numbers)


def _percentile(value: Any, p: Any) -> float:
    share = real(p, "percentile")
    if not 0 <= share <= 100:
        raise ExpressionError(f"a percentile lies between 0 and 100, not {share!r}")
    ordered = sorted(_numbers(value, "percentile"))
    place = share / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _slope(value: Any) -> float:
    series = _series(value, "slope")
    if len(series) < 2:
        raise ExpressionError("slope() needs two values")
    steps = [float(key) for key in series.keys]
    return statistics.linear_regression(steps, series.values).slope


def _ema(value: Any, alpha: Any = 0.1) -> float:
    weight = real(alpha, "alpha")
    if not 0 < weight <= 1:
        raise ExpressionError(f"alpha lies above 0 and up to 1, not {weight!r}")
    smoothed, *rest = _numbers(value, "ema")
    for v in rest:
        smoothed += weight * (v - smoothed)
    return smoothed


def _at(value: Any, step: Any) -> float:
    series = _series(value, "at")
    return index(series, step)


def index(view: View, key: Any) -> float:
    """The value at a step (``3`` or ``"3"``) or name. Raises ExpressionError naming the steps there are."""
    found = view.index().get(str(key)) if isinstance(key, (int, str)) and not isinstance(key, bool) else None
    if found is None:
        there = f"its steps are {view.keys[0]} to {view.keys[-1]}" if len(view) else "it is empty"
        if len(view) and not view.stepped:
            there = "its names are " + ", ".join(str(k) for k in view.keys[:5])
        raise ExpressionError(f"{view.tag} has nothing at {key!r}; {there}")
    return found


def _count(value: Any) -> int:
    if isinstance(value, (View, Data, list, tuple, str)):
        return len(value)
    raise ExpressionError(f"{kind(value)} cannot be counted")


def _monotonic(value: Any, direction: Any = "increasing") -> bool:
    numbers = _numbers(value, "monotonic")
    pairs = pairwise(numbers)
    if direction == "increasing":
        return all(a <= b for a, b in pairs)
    if direction == "decreasing":
        return all(a >= b for a, b in pairs)
    raise ExpressionError(f"direction is 'increasing' or 'decreasing', not {direction!r}")


def _within(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> bool:
    relative, absolute = real(rtol, "rtol"), real(atol, "atol")

    def near(x: float, y: float) -> bool:
        return abs(x - y) <= absolute + relative * abs(y)

    if isinstance(a, View) and isinstance(b, View):
        return a.keys == b.keys and all(near(x, y) for x, y in zip(a.values, b.values, strict=True))
    if isinstance(a, View):
        return all(near(x, real(b, "within")) for x in _numbers(a, "within"))
    return near(real(a, "within"), real(b, "within"))


def exists_in(data: Data) -> Callable[..., bool]:
    def exists(tag: Any, step: Any = None) -> bool:
        if not isinstance(tag, str):
            raise ExpressionError(f"exists() needs a tag, not {kind(tag)}")
        if tag not in data:
            return False
        value = data.get(tag)
        return step is None or (isinstance(value, View) and str(step) in value.index())

    return exists


def _sequence(value: Any, name: str) -> list[Any]:
    if isinstance(value, View):
        return list(value.keys)
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, Data):
        return list(value)
    raise ExpressionError(f"{name}() needs values, not {kind(value)}")


def _all(value: Any) -> bool:
    values = _sequence(value, "all")
    if not values:
        raise ExpressionError("all() of no values holds whatever the run did")
    return all(values)


def _sum(value: Any) -> float:
    return math.fsum(_numbers(value, "sum"))


def _round(value: Any, digits: Any = 0) -> float:
    return round(float(real(value, "round")), int(real(digits, "digits")))


def _isclose(a: Any, b: Any, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> bool:
    tolerances = {"rel_tol": abs(real(rel_tol, "rel_tol")), "abs_tol": abs(real(abs_tol, "abs_tol"))}
    return math.isclose(real(a, "isclose"), real(b, "isclose"), **tolerances)


HELPERS: dict[str, Callable[..., Any]] = {
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "mean": _mean,
    "median": _median,
    "ratio_above": _ratio_above,
    "all_finite": _all_finite,
    "first": _first,
    "last": _last,
    "std": _std,
    "percentile": _percentile,
    "slope": _slope,
    "ema": _ema,
    "at": _at,
    "count": _count,
    "len": _count,
    "monotonic": _monotonic,
    "within": _within,
    "exists": exists_in,
    "abs": lambda value: abs(real(value, "abs")),
    "round": _round,
    "float": lambda value: float(real(value, "float")),
    "int": lambda value: int(real(value, "int")),
    "sum": _sum,
    "isclose": _isclose,
    "all": _all,
    "any": lambda value: any(_sequence(value, "any")),
    "list": lambda value: _sequence(value, "list"),
    "sorted": lambda value: sorted(_sequence(value, "sorted")),
}
NEEDS_DATA = frozenset({"exists"})
