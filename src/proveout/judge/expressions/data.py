"""What ``data`` is in an expression: series by tag, and single values as a results file may hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from proveout.domain.metrics import MetricTable, Series

Scalar = float | int | str | bool | None


class View:
    """One series as an expression sees it: keys are steps, or names where a results file has no steps."""

    __slots__ = ("_bad", "_index", "keys", "source", "stepped", "tag", "values")

    def __init__(self, tag: str, keys: list[int] | list[str], values: list[float], source: str = "") -> None:
        self.tag, self.keys, self.values, self.source = tag, keys, values, source
        self.stepped = not keys or isinstance(keys[0], int)
        self._index: dict[str, float] | None = None
        self._bad: list[int | str] | None = None

    @classmethod
    def of(cls, tag: str, series: Series) -> View:
        """The view of a series of the metric table."""
        return cls(tag, list(series.steps), list(series.values), series.source)

    def __len__(self) -> int:
        return len(self.keys)

    def index(self) -> dict[str, float]:
        """Values by key; a step is looked up in its decimal form, as in the JSON file."""
        if self._index is None:
            self._index = {str(key): value for key, value in zip(self.keys, self.values, strict=True)}
        return self._index

    def non_finite(self) -> list[int | str]:
        """Keys whose value is NaN or infinite."""
        if self._bad is None:
            pairs: zip[tuple[int | str, float]] = zip(self.keys, self.values, strict=True)
            if _all_finite(self.values):
                self._bad = []
            else:
                self._bad = [key for key, value in pairs if not math.isfinite(value)]
        return self._bad

    def as_series(self) -> Series:
        """The series again, for drawing; keys that are not steps are counted from 0."""
        keys = [key if isinstance(key, int) else place for place, key in enumerate(self.keys)]
        return Series.of(dict(zip(keys, self.values, strict=True)), self.source)


def _all_finite(values: list[float]) -> bool:
    # The sum of finite values may overflow to infinity, but any NaN or infinity always shows in it.
    return math.isfinite(sum(values))


class Data:
    """All tags of one metrics file or attempt."""

    def __init__(
        self, table: MetricTable | None = None, other: Mapping[str, View | Scalar] | None = None
    ) -> None:
        self._table = table.series if table is not None else {}
        self._other = dict(other or {})
        self._views: dict[str, View] = {}

    def __contains__(self, tag: object) -> bool:
        return tag in self._table or tag in self._other

    def __iter__(self) -> Iterator[str]:
        yield from self._table
        yield from (tag for tag in self._other if tag not in self._table)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, tag: str) -> View | Scalar:
        """The series or single value of ``tag``. Raises KeyError."""
        if tag in self._views:
            return self._views[tag]
        if tag in self._table:
            view = self._views[tag] = View.of(tag, self._table[tag])
            return view
        return self._other[tag]
