"""Geometry of one metric plot: what the template draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from proveout.domain.report import PlotSeries

WIDTH, HEIGHT = 440.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 14.0, 26.0
DOTTED = 30


class Tick(msgspec.Struct, frozen=True):
    """A place on an axis, in SVG units, and its label."""

    at: float
    label: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One series as drawn: ``path`` with gaps where values are not finite, ``dots`` for lone points."""

    name: str
    role: str
    path: str
    dots: tuple[tuple[float, float], ...]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An offending step: x, and y where its value is finite (a cross is drawn there)."""

    x: float
    y: float | None
    step: int


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One plot of one step.

    ``broken`` are places without a finite value; ``data`` is what the script needs for hover values.
    """

    id: str
    title: str
    tags: tuple[str, ...]
    unit: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    broken: tuple[float, ...]
    summary: tuple[str, ...]
    thinned: int
    data: dict[str, object]


def chart(identifier: str, title: str, series: Sequence[PlotSeries], most: int) -> Chart:
    """The plot of all ``series`` on common axes, at most ``most`` points of each drawn."""
    kept = [(one, _thin(one, most)) for one in series]
    values = [v for one, at in kept for i in at if (v := one.values[i]) is not None]
    steps = [one.steps[i] for one, at in kept for i in at]
    x_low, x_high = min(steps, default=0), max(steps, default=1)
    y_low, y_high, y_ticks = _axis(values)
    span = max(x_high - x_low, 1)
    alone = x_low == x_high

    def x(step: int) -> float:
        share = 0.5 if alone else (step - x_low) / span
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        share = (value - y_low) / (y_high - y_low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    drawn = [_line(one, at, x, y, several=_several_tags(series)) for one, at in kept]
    drawn.sort(key=lambda line: line.role != "baseline")
    own = [one for one in series if one.role != "baseline"]
    marks = {
        step: Mark(x=x(step), y=None if value is None else y(value), step=step)
        for one in own
        for step, value in zip(one.steps, one.values, strict=True)
        if step in one.marked
    }
    return Chart(
        id=identifier,
        title=title,
        tags=tuple(dict.fromkeys(one.tag for one in series)),
        unit=series[0].unit,
        lines=tuple(drawn),
        x_ticks=tuple(Tick(x(step), str(step)) for step in _step_ticks(x_low, x_high)),
        y_ticks=tuple(Tick(y(value), label) for value, label in y_ticks),
        marks=tuple(marks.values()),
        broken=tuple(dict.fromkeys(x(o.steps[i]) for o, at in kept for i in at if o.values[i] is None)),
        summary=tuple(_summary(one, several=_several_tags(series)) for one in series),
        thinned=max((one.total or len(one.steps)) - len(at) for one, at in kept),
        data={
            "unit": series[0].unit,
            "x": [LEFT, WIDTH - RIGHT, x_low, x_high],
            "y": [HEIGHT - BOTTOM, TOP, y_low, y_high],
            "series": [
                {
                    "name": _name(one, several=_several_tags(series)),
                    "role": one.role,
                    "points": [(one.steps[i], _short(one.values[i])) for i in at],
                    "marked": one.marked,
                }
                for one, at in kept
            ],
        },
    )


def number(value: float | None) -> str:
    """A value for people, five digits; a value that is not finite says so."""
    if value is None or not math.isfinite(value):
        return "not finite"
    return f"{value:.5g}"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.9g}")


def _several_tags(series: Sequence[PlotSeries]) -> bool:
    return len({one.tag for one in series}) > 1


def _name(one: PlotSeries, *, several: bool) -> str:
    role = "this run" if one.role == "candidate" else one.role
    return f"{one.tag}, {role}" if several else role


def _line(
    one: PlotSeries,
    at: list[int],
    x: Callable[[int], float],
    y: Callable[[float], float],
    *,
    several: bool,
) -> Line:
    parts: list[list[tuple[float, float]]] = [[]]
    for i in at:
        value = one.values[i]
        if value is None:
            parts.append([])
        else:
            parts[-1].append((x(one.steps[i]), y(value)))
    path = " ".join("M" + " L".join(f"{a} {b}" for a, b in part) for part in parts if len(part) > 1)
    dotted = parts if len(at) <= DOTTED else [part for part in parts if len(part) == 1]
    dots = tuple(point for part in dotted for point in part)
    return Line(name=_name(one, several=several), role=one.role, path=path, dots=dots)


def _thin(one: PlotSeries, most: int) -> list[int]:
    count = len(one.steps)
    if count <= most:
        return list(range(count))
    stride = math.ceil(count / max(2, most))
    wanted = set(one.marked)
    keep = {*range(0, count, stride), count - 1, *(i for i, step in enumerate(one.steps) if step in wanted)}
    return sorted(keep)


def _axis(values: Sequence[float]) -> tuple[float, float, list[tuple[float, str]]]:
    """Low and high end, and three to six round values between them."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        margin = abs(high) * 1e-3 or 1.0
        return low - margin, high + margin, [(high, f"{high:.5g}")]
    margin = (high - low) * 0.06
    low, high = low - margin, high + margin
    step = round_step((high - low) / 5)
    first = math.ceil(low / step)
    ticks = [k * step for k in range(first, math.floor(high / step) + 1)]
    return low, high, list(zip(ticks, _labels(ticks, step), strict=True))


def round_step(rough: float) -> float:
    """The round number at or above ``rough`` by which an axis counts."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * 0.999)


def _labels(ticks: Iterable[float], step: float) -> list[str]:
    ticks = list(ticks)
    largest = max((abs(tick) for tick in ticks), default=1.0)
    if largest >= 1e5 or largest < 1e-3:
        digits = math.floor(math.log10(largest)) - math.floor(math.log10(step)) + _quarter(step)
        return [
            f"{tick:.{max(0, digits)}e}".replace("e-0", "e-").replace("e+0", "e") if tick else "0"
            for tick in ticks
        ]
    decimals = max(0, -math.floor(math.log10(step))) + _quarter(step)
    return [f"{tick:.{decimals}f}" for tick in ticks]


def _quarter(step: float) -> int:
    """One more digit where the axis counts in 2.5."""
    return int(f"{step:.1e}".startswith("2.5"))


def _step_ticks(low: int, high: int) -> list[int]:
    if low == high:
        return [low]
    stride = max(1, round(round_step((high - low) / 5)))
    inner = list(range(math.ceil(low / stride) * stride, high + 1, stride))
    return inner if len(inner) > 1 else [low, high]


def _summary(one: PlotSeries, *, several: bool) -> str:
    finite = [value for value in one.values if value is not None]
    name = f"{_name(one, several=several)}: "
    if not finite:
        return f"{name}no finite value"
    way = (
        number(one.values[0])
        if len(one.values) == 1
        else f"{number(one.values[0])} → {number(one.values[-1])}"
    )
    ends = (one.values[0], one.values[-1])
    inside = {min(finite), max(finite)} <= set(ends)
    span = "" if inside else f" ({number(min(finite))} to {number(max(finite))})"
    return f"{name}{way}{span}"
