"""Two metric tables, tag by tag: absolute and relative error, and what only one of them holds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from proveout.domain.metrics import MetricTable, Series
from proveout.judge.machine import is_machine
from proveout.judge.tolerance import EXACT, Tolerance, of_tag


class TagComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One tag in both tables.

    ``steps`` are those that both hold, ``values`` and ``baseline`` the values there (float64 as read).
    ``only_run`` and ``only_baseline`` are steps that one of them lacks. ``max_abs`` and ``max_rel`` are the
    largest errors, at ``max_abs_step`` and ``max_rel_step``; relative to the baseline, infinite where it is 0
    and the value is not, NaN where a value is not finite. ``judged`` is False for series of the machine.
    """

    tag: str
    tolerance: Tolerance
    steps: tuple[int, ...]
    values: tuple[float, ...]
    baseline: tuple[float, ...]
    only_run: tuple[int, ...] = ()
    only_baseline: tuple[int, ...] = ()
    max_abs: float = 0.0
    max_abs_step: int | None = None
    max_rel: float = 0.0
    max_rel_step: int | None = None
    offending: tuple[int, ...] = ()
    judged: bool = True

    @property
    def ok(self) -> bool:
        """All common steps within tolerance, at least one of them, and none missing on either side."""
        return bool(self.steps) and not (self.offending or self.only_run or self.only_baseline)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All tags of two tables. ``only_run`` and ``only_baseline`` are tags that one of them lacks."""

    tags: tuple[TagComparison, ...]
    only_run: tuple[str, ...] = ()
    only_baseline: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Every judged tag of the baseline is in the run and within tolerance, and there is one at least."""
        judged = [tag for tag in self.tags if tag.judged]
        missing = [tag for tag in self.only_baseline if not is_machine(tag)]
        return bool(judged) and not missing and all(tag.ok for tag in judged)

    @property
    def failing(self) -> tuple[TagComparison, ...]:
        """Judged tags that are not within tolerance."""
        return tuple(tag for tag in self.tags if tag.judged and not tag.ok)


def compare_tables(
    run: MetricTable,
    baseline: MetricTable,
    tolerances: Mapping[str, Tolerance] | None = None,
    default: Tolerance = EXACT,
) -> Comparison:
    """``run`` against ``baseline``. ``tolerances`` maps tags or globs; ``default`` applies to the rest.

    Lengths may differ: steps that one side lacks are named and make the tag differ. Series of the machine
    (timing, memory) are compared but not judged unless ``tolerances`` names the tag itself.
    """
    named = dict(tolerances or {})
    both = [tag for tag in run.tags() if tag in baseline.series]
    return Comparison(
        tags=tuple(
            compare_series(
                tag,
                run.series[tag],
                baseline.series[tag],
                of_tag(tag, named, default),
                judged=tag in named or not is_machine(tag),
            )
            for tag in both
        ),
        only_run=tuple(tag for tag in run.tags() if tag not in baseline.series),
        only_baseline=tuple(tag for tag in baseline.tags() if tag not in run.series),
    )


def compare_series(
    tag: str, run: Series, baseline: Series, tolerance: Tolerance, *, judged: bool = True
) -> TagComparison:
    """One series against its baseline."""
    ours, theirs = run.as_dict(), baseline.as_dict()
    steps = tuple(step for step in ours if step in theirs)
    absolute = {step: abs(ours[step] - theirs[step]) for step in steps}
    relative = {step: _relative(ours[step], theirs[step]) for step in steps}
    far, farther = _largest(absolute), _largest(relative)
    return TagComparison(
        tag=tag,
        tolerance=tolerance,
        steps=steps,
        values=tuple(ours[step] for step in steps),
        baseline=tuple(theirs[step] for step in steps),
        only_run=tuple(step for step in ours if step not in theirs),
        only_baseline=tuple(step for step in theirs if step not in ours),
        max_abs=absolute[far] if far is not None else 0.0,
        max_abs_step=far,
        max_rel=relative[farther] if farther is not None else 0.0,
        max_rel_step=farther,
        offending=tuple(step for step in steps if not tolerance.holds(ours[step], theirs[step])),
        judged=judged,
    )


def _relative(value: float, baseline: float) -> float:
    error = abs(value - baseline)
    if error == 0 or math.isnan(error):
        return error
    return error / abs(baseline) if baseline else math.inf


def _largest(errors: Mapping[int, float]) -> int | None:
    """The step of the largest error; a NaN is larger than everything."""
    return max(errors, key=lambda step: (math.isnan(errors[step]), errors[step]), default=None)
