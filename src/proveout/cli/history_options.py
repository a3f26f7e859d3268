"""Which runs the history commands look at; shared by all of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proveout.cli import options
from proveout.domain.errors import UsageError, nearest
from proveout.domain.verdict import Verdict

if TYPE_CHECKING:
    from proveout.store.history.index import HistoryIndex
    from proveout.store.history.records import Filter

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_MANY = 50


class Asked:
    """The runs that were asked for: the directory of runs and the filter."""

    def __init__(self, root: Path, wanted: Filter) -> None:
        self.root, self.filter = root, wanted

    def index(self) -> HistoryIndex:
        """The history, with everything that the run directories hold."""
        from proveout.flow.indexing import catch_up, index_of

        for sentence in catch_up(self.root, progress):
            click.echo(f"proveout: {sentence}", err=True)
        index = index_of(self.root)
        _check(index, self.filter)
        return index


def progress(done: int, total: int) -> None:
    """Say how far reading runs is, where there are many."""
    if total >= _MANY:
        end = "\n" if done == total or not sys.stderr.isatty() else "\r"
        click.echo(f"reading runs: {done} of {total}{end}", nl=False, err=True)


def filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options and hands them on as ``asked``."""

    @click.option("--loop", help="Only this loop.")
    @click.option("--level", type=click.IntRange(0), help="Only this level.")
    @click.option("--variant", help="Only this variant of a level.")
    @click.option("--model", help="Only models whose name holds this.")
    @click.option("--commit", help="Only runs of a checkout at this commit (its beginning will do).")
    @click.option("--verdict", help="Only this verdict.")
    @click.option("--since", callback=_since, help="Only runs since then: 2026-05-01, 7d, 12h.")
    @options.state_dir
    @wraps(command)
    def with_filters(
        *arguments: Any,
        loop: str | None,
        level: int | None,
        variant: str | None,
        model: str | None,
        commit: str | None,
        verdict: str | None,
        since: float | None,
        state_dir: Path | None,
        **others: Any,
    ) -> Any:
        from proveout.store.history.records import Filter
        from proveout.store.runs import runs_root

        wanted = Filter(
            loop=loop or "",
            level=level,
            variant=variant or "",
            model=model or "",
            commit=_commit(commit),
            verdict=_verdict(verdict),
            since=since,
        )
        return command(*arguments, asked=Asked(runs_root(state_dir), wanted), **others)

    return with_filters


def _since(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    number, unit = value[:-1], value[-1:]
    if number.isdigit() and unit in _UNITS:
        return time.time() - int(number) * _UNITS[unit]
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time; give a date such as 2026-05-01 or an age such as 7d or 12h"
        ) from None


def _commit(value: str | None) -> str:
    if value and (len(value) > 40 or any(letter not in "0123456789abcdefABCDEF" for letter in value)):
        raise UsageError(f"--commit {value!r} is no commit", remedy="give the beginning of its hash")
    return value or ""


def _verdict(value: str | None) -> str:
    known = {verdict.lower(): verdict.value for verdict in Verdict}
    if value and value.lower() not in known:
        raise UsageError(
            f"--verdict {value!r} is none{nearest(value, list(Verdict))}",
            remedy=f"known: {', '.join(Verdict)}",
        )
    return known[value.lower()] if value else ""


def _check(index: HistoryIndex, wanted: Filter) -> None:
    """A loop that no run had is a mistake only where it is not known at all."""
    from proveout.store.history.queries import distinct

    if wanted.loop and wanted.loop not in distinct(index, "loop"):
        from proveout import loops

        loops.get(wanted.loop)
