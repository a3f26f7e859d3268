"""Geometry of the timeline of one attempt: the whole of it, and its training part by phase."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proveout.domain.report import Phase
from proveout.report.html.chart import Tick, round_step

WIDTH = 900.0
LEFT, RIGHT = 110.0, 12.0
ROW, BAR = 24.0, 14.0
TOP, BOTTOM = 6.0, 26.0


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One drawn span: SVG units, what it is, and the words that say when."""

    x: float
    y: float
    width: float
    kind: str
    title: str


class Gantt(msgspec.Struct, frozen=True, kw_only=True):
    """One panel: its rows from top to bottom, bars, and an axis in seconds."""

    title: str
    height: float
    rows: tuple[Tick, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    axis: float


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one phase over the attempt."""

    name: str
    seconds: float
    share: float
    count: int


def panels(phases: Sequence[Phase]) -> list[Gantt]:
    """The attempt as one row, and its training steps with a row for each phase."""
    if not phases:
        return []
    training = [phase for phase in phases if phase.of]
    whole = [phase for phase in phases if not phase.of]
    if training:
        start, end = training[0].start, training[-1].end
        whole.append(Phase(name="training steps", start=start, end=end))
    whole.sort(key=lambda phase: phase.start)
    found = [_panel("The whole attempt", whole)]
    if training:
        found.append(_panel(f"Training, {training[0].of} to {training[-1].of}", training))
    return found


def totals(phases: Sequence[Phase]) -> list[Total]:
    """Seconds and share by phase, in the order in which the phases appear."""
    length = max((phase.end for phase in phases), default=0.0) or 1.0
    found = []
    for name in dict.fromkeys(phase.name for phase in phases):
        of_name = [phase for phase in phases if phase.name == name]
        seconds = sum(phase.end - phase.start for phase in of_name)
        found.append(Total(name=name, seconds=seconds, share=seconds / length, count=len(of_name)))
    return found


def seconds(value: float) -> str:
    """A length of time for people."""
    if value >= 5400:
        return f"{value / 3600:.1f} h"
    if value >= 90:
        return f"{value // 60:.0f} min {value % 60:.0f} s"
    if value >= 1:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.001 else "< 1 ms"


def _panel(title: str, phases: Sequence[Phase]) -> Gantt:
    names = list(dict.fromkeys(phase.name for phase in phases))
    low, high = min(p.start for p in phases), max(p.end for p in phases)
    length = max(high - low, 1e-9)
    unit = (WIDTH - LEFT - RIGHT) / length
    bars = [
        Bar(
            x=round(LEFT + (phase.start - low) * unit, 1),
            y=TOP + names.index(phase.name) * ROW + (ROW - BAR) / 2,
            width=max(1.0, round((phase.end - phase.start) * unit, 1)),
            kind="training" if phase.name in ("training", "training steps") else "phase",
            title=f"{phase.name}{', ' + phase.of if phase.of else ''}: {seconds(phase.end - phase.start)}, "
            f"from {phase.start:.2f} s to {phase.end:.2f} s",
        )
        for phase in phases
    ]
    axis = TOP + len(names) * ROW
    step = round_step(length / 6)
    first = -(-low // step)
    at = [(first + k) * step for k in range(int((high - first * step) / step) + 1)]
    places = max(0, min(3, len(f"{step:.3f}".rstrip("0").partition(".")[2])))
    return Gantt(
        title=title,
        height=axis + BOTTOM,
        rows=tuple(Tick(TOP + row * ROW + ROW / 2, name) for row, name in enumerate(names)),
        bars=tuple(bars),
        ticks=tuple(Tick(round(LEFT + (t - low) * unit, 1), f"{t:.{places}f} s") for t in at),
        axis=axis,
    )
