"""NaN that only pads the steps between two evaluations, told from NaN that was measured."""

from __future__ import annotations

import math
from itertools import pairwise

from proveout.domain.metrics import Series

EVALUATION = ("validation/", "val-core/", "val-aux/", "val/", "eval/", "eval_", "val_", "test/")


def is_padding(tag: str, series: Series) -> bool:
    """Whether every non-finite value of an evaluation series stands on a step where nothing was evaluated.

    The finite values must lie at one regular distance, counted from step 0 where there is only one of them,
    and no NaN may stand where that rhythm calls for an evaluation. An infinity is never padding.
    """
    if not tag.startswith(EVALUATION) or any(math.isinf(value) for value in series.values):
        return False
    measured = [step for step, value in series if math.isfinite(value)]
    padded = series.non_finite_steps()
    if not measured or not padded:
        return False
    distances = {b - a for a, b in pairwise(measured)} or {measured[0]}
    if len(distances) != 1:
        return False
    period = distances.pop()
    return period > 1 and all((step - measured[0]) % period for step in padded)
