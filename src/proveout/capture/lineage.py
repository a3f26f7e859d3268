"""Which readings belong to one run, which run goes on from which, and which are earlier attempts.

A run that begins after the first step of the one before it goes on from there: a resume. One that begins at
or before it started over, and what came before is another attempt. A run that shows no training step at all
proves no resume, so it counts as started over: metrics of an earlier attempt must not pass for its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from proveout.capture.reading import Reading

_EXPERIMENT = re.compile(r"exp_\d+")


class Run(NamedTuple):
    """Readings written by one start of a training; ``started`` and ``ended`` in epoch seconds."""

    name: str
    readings: tuple[Reading, ...]
    started: float
    ended: float
    first: int | None
    last: int | None

    @property
    def steps(self) -> str:
        """The training steps in words."""
        return "no training step" if self.first is None else f"steps {self.first} to {self.last}"


class Lineage(NamedTuple):
    """The runs that make up the newest attempt, oldest first, and the earlier ones that it replaced."""

    kept: tuple[Run, ...]
    replaced: tuple[Run, ...]

    def readings(self) -> list[Reading]:
        """What makes up the attempt: all of the newest run and the training steps of those before it."""
        earlier = [reading.training_alone() for run in self.kept[:-1] for reading in run.readings]
        return earlier + [reading for run in self.kept[-1:] for reading in run.readings]


def runs(readings: Iterable[Reading]) -> list[Run]:
    """The runs in the order in which they began.

    Files under different ``exp_N`` directories are different runs; other files are one run where the times of
    their records overlap.
    """
    known = sorted(readings, key=lambda reading: (reading.started or 0.0, reading.source))
    groups: list[list[Reading]] = []
    experiments: dict[str, list[Reading]] = {}
    for reading in known:
        experiment = _experiment(reading.source)
        if experiment:
            if experiment not in experiments:
                experiments[experiment] = []
                groups.append(experiments[experiment])
            experiments[experiment].append(reading)
            continue
        open_group = next(
            (
                group
                for group in reversed(groups)
                if not _experiment(group[0].source)
                and (reading.started or 0.0) < max(other.ended or 0.0 for other in group)
            ),
            None,
        )
        if open_group is not None:
            open_group.append(reading)
        else:
            groups.append([reading])
    return [_run(group) for group in groups]


def _experiment(source: str) -> str | None:
    path = Path(source)
    found = next((parent for parent in path.parents if _EXPERIMENT.fullmatch(parent.name)), None)
    return None if found is None else str(found)


def _run(group: Sequence[Reading]) -> Run:
    spans = [span for reading in group if (span := reading.step_span())]
    return Run(
        name=_experiment(group[0].source) or ", ".join(reading.source for reading in group),
        readings=tuple(group),
        started=min(reading.started or 0.0 for reading in group),
        ended=max(reading.ended or 0.0 for reading in group),
        first=min((first for first, _ in spans), default=None),
        last=max((last for _, last in spans), default=None),
    )


def newest(ordered: Sequence[Run]) -> Lineage:
    """The newest run with those that it goes on from, and the rest."""
    kept: list[Run] = []
    replaced: list[Run] = []
    for run in ordered:
        begins = kept[0].first if kept else None
        goes_on = begins is not None and run.first is not None and run.first > begins
        if not goes_on:
            replaced.extend(kept)
            kept = []
        kept.append(run)
    return Lineage(tuple(kept), tuple(replaced))
