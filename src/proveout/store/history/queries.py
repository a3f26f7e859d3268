"""What is asked of the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import Any

from proveout.store.history.index import HistoryIndex
from proveout.store.history.records import Filter, MetricRow, RunRow, StepRow

_STEP = (
    "r.id AS run, r.started, r.model, r.change, r.state, r.version, s.step, s.loop, s.level, s.variant, "
    "s.verdict, s.verdicts, s.seconds, s.command, s.recipe, s.boundary, s.cause"
)
_METRIC = (
    "r.id AS run, r.started, r.model, r.change, s.step, s.loop, s.level, s.variant, s.verdict, s.command, s.recipe, "
    "t.name AS tag, m.points, m.non_finite, m.first, m.last, m.tail, m.median, m.low, m.high, t.machine"
)
_OF_METRICS = (
    "metrics m JOIN tags t ON t.id = m.tag JOIN steps s ON s.run = m.run AND s.place = m.place "
    "JOIN runs r ON r.id = m.run"
)


def runs(index: HistoryIndex, wanted: Filter, limit: int = 0) -> list[RunRow]:
    """Runs, newest first, at most ``limit`` of them (0: all). A run counts when one of its steps is wanted."""
    conditions, values = _run_conditions(wanted)
    inner, more = _step_conditions(wanted, verdict=False)
    if inner:
        conditions.append(f"r.id IN (SELECT s.run FROM steps s{_where(inner)})")  # noqa: S608
        values += more
    if wanted.verdict:
        conditions.append("r.verdict = ?")
        values.append(wanted.verdict)
    sql = "SELECT r.* FROM runs r" + _where(conditions) + " ORDER BY r.started DESC, r.id DESC"  # noqa: S608
    with index.connect() as connection:
        found = _rows(connection, sql + (f" LIMIT {limit:d}" if limit else ""), values)
        return [_run_row(connection, row) for row in found]


def count(index: HistoryIndex) -> int:
    """How many runs the index holds."""
    with index.connect() as connection:
        return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])


def steps(index: HistoryIndex, wanted: Filter) -> list[StepRow]:
    """Steps of runs, oldest first."""
    conditions, values = _conditions(wanted)
    sql = f"SELECT {_STEP} FROM steps s JOIN runs r ON r.id = s.run{_where(conditions)}"  # noqa: S608 - fixed text
    with index.connect() as connection:
        found = _rows(connection, sql + " ORDER BY r.started, r.id, s.place", values)
    return [StepRow(**{**row, "verdicts": _words(row["verdicts"])}) for row in found]


def metrics(
    index: HistoryIndex, wanted: Filter, tags: tuple[str, ...] = (), of_runs: Collection[str] | None = None
) -> list[MetricRow]:
    """Series of steps, oldest first. ``tags`` may hold ``*``, ``?`` and ``[...]``; empty: all.

    ``of_runs`` are the runs to look at; None: all.
    """
    conditions, values = _conditions(wanted)
    if tags:
        conditions.append("(" + " OR ".join(["t.name = ? OR t.name GLOB ?"] * len(tags)) + ")")
        values += [word for tag in tags for word in (tag, tag)]
    if of_runs is not None:
        conditions.append("m.run IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(of_runs)))
    sql = f"SELECT {_METRIC} FROM {_OF_METRICS}{_where(conditions)}"  # noqa: S608 - fixed text
    with index.connect() as connection:
        found = _rows(connection, sql + " ORDER BY r.started, r.id, s.place, t.name", values)
    return [MetricRow(**{**row, "machine": bool(row["machine"])}) for row in found]


def tag_names(index: HistoryIndex) -> list[str]:
    """All tags that any run has."""
    with index.connect() as connection:
        return [name for (name,) in connection.execute("SELECT name FROM tags ORDER BY name")]


def distinct(index: HistoryIndex, column: str) -> list[str]:
    """The values that ``loop``, ``model`` or ``variant`` have in the index."""
    table = {"loop": "steps", "variant": "steps", "model": "runs"}[column]
    with index.connect() as connection:
        return [value for (value,) in connection.execute(f"SELECT DISTINCT {column} FROM {table}")]  # noqa: S608


def _run_row(connection: sqlite3.Connection, row: dict[str, Any]) -> RunRow:
    parts = connection.execute(
        "SELECT loop, level, variant, verdict FROM steps WHERE run = ? ORDER BY place", (row["id"],)
    ).fetchall()
    coverage = tuple(f"{loop} L{level} {variant}: {verdict}" for loop, level, variant, verdict in parts)
    kept = {name: row[name] for name in RunRow.__struct_fields__ if name != "coverage"}
    return RunRow(**kept, coverage=coverage)


def _conditions(wanted: Filter) -> tuple[list[str], list[Any]]:
    first, values = _run_conditions(wanted)
    second, more = _step_conditions(wanted, verdict=True)
    return first + second, values + more


def _run_conditions(wanted: Filter) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if wanted.since is not None:
        conditions.append("r.started >= ?")
        values.append(wanted.since)
    if wanted.model:
        conditions.append("instr(lower(r.model), lower(?)) > 0")
        values.append(wanted.model)
    if wanted.commit:
        conditions.append("r.id IN (SELECT run FROM commits WHERE hash >= ? AND hash < ?)")
        values += [wanted.commit.lower(), wanted.commit.lower() + "g"]
    return conditions, values


def _step_conditions(wanted: Filter, *, verdict: bool) -> tuple[list[str], list[Any]]:
    pairs: list[tuple[str, Any]] = [("loop", wanted.loop or None), ("level", wanted.level)]
    pairs += [("variant", wanted.variant or None), ("verdict", (verdict and wanted.verdict) or None)]
    given = [(name, value) for name, value in pairs if value is not None]
    return [f"s.{name} = ?" for name, _ in given], [value for _, value in given]


def _where(conditions: list[str]) -> str:
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def _rows(connection: sqlite3.Connection, sql: str, values: list[Any]) -> list[dict[str, Any]]:
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
