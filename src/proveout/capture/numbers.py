"""Numbers as training logs print them."""

from __future__ import annotations

import math
import re

_WRAPPED = re.compile(
    r"(?:(?:np|numpy|torch|jnp)\.)?(?:float|int|uint|bool|bfloat|tensor|array)\w*\(([^(),]+)(?:,[^()]*)?\)"
)
_WORDS = {
    "nan": math.nan,
    "-nan": math.nan,
    "null": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "true": 1.0,
    "false": 0.0,
    "np.true_": 1.0,
    "np.false_": 0.0,
}
_WHOLE = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> float | None:
    """The value of ``0.5``, ``np.float64(2.0)``, ``tensor(0.5)``, ``nan``, ``inf``, ``True``; else None."""
    text = text.strip()
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        text = wrapped[1].strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    return _WORDS.get(text.lower())


def plain(value: object) -> float | None:
    """The value of a decoded JSON number, boolean, null (NaN) or number in quotes; None for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return number(value) if isinstance(value, str) else None


def whole(value: object) -> int | None:
    """A step: a whole number within int64, also as text or as 3.0; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else number(value)
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None
