"""Whether the judge knows a criterion and takes its parameters, without judging anything."""

from __future__ import annotations

import sys

import msgspec

from proveout.domain.errors import nearest
from proveout.domain.step import Criterion
from proveout.judge.registry import CRITERIA


def wrong(criterion: Criterion) -> str:
    """What is wrong with ``criterion``: an unknown kind, or parameters that its module refuses; '' if nothing."""
    function = CRITERIA.get(criterion.kind)
    if function is None:
        return f"no criterion {criterion.kind!r}{nearest(criterion.kind, CRITERIA)}"
    try:
        msgspec.convert(dict(criterion.params), sys.modules[function.__module__].Params)
    except msgspec.ValidationError as error:
        return f"{criterion.kind}: {error}"
    return ""
