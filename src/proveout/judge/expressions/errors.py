"""What can be wrong with an expression, with the place in it."""

from __future__ import annotations


class ExpressionError(Exception):
    """``what`` is wrong at ``column`` (counted from 1) of the expression."""

    def __init__(self, what: str, column: int | None = None) -> None:
        self.what, self.column = what, column
        super().__init__(f"{what} (column {column})" if column else what)


class RefusedError(ExpressionError):
    """Syntax outside the allow-list, or larger than the limits: nothing of it was evaluated."""
