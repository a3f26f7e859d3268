"""Options of the robust statistics, shared by the commands that use them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def rule(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options and hands them on as ``rule``."""

    @click.option("--last", default=20, show_default=True, type=click.IntRange(2), help="Good runs to use.")
    @click.option(
        "--at-least", default=5, show_default=True, type=click.IntRange(2), help="... and the fewest."
    )
    @click.option("--sigmas", default=4.0, show_default=True, help="Robust deviations that count as moved.")
    @click.option(
        "--min-change", default=0.1, show_default=True, help="Share of the median that has to be passed, too."
    )
    @wraps(command)
    def with_rule(
        *arguments: Any, last: int, at_least: int, sigmas: float, min_change: float, **others: Any
    ) -> Any:
        from proveout.store.history.robust import Rule

        made = Rule(last=last, at_least=at_least, sigmas=sigmas, min_change=min_change)
        return command(*arguments, rule=made, **others)

    return with_rule
