"""The index as a SQLite file: any number of processes write and read it at once.

Write-ahead logging lets readers go on while one process writes; writers wait for each other. Every run goes in
by one transaction, so that a kill leaves it whole or absent. The file may be deleted at any time: what it says is
read again from the run directories.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

from proveout.domain.errors import BlockedError
from proveout.store.history.records import MetricRecord, RunRecord, StepRecord

SCHEMA = 1
WAIT_SECONDS = 60.0
_TABLES = ("metrics", "tags", "steps", "commits", "runs")


class HistoryIndex:
    """One history file. Raises BlockedError where it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """A connection, inside one transaction that commits at the end."""
        try:
            self._prepare()
            with closing(self._open()) as connection:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise BlockedError(
                f"the history cannot be used: {error}",
                where=str(self.path),
                remedy="'proveout history rebuild' makes it anew from the run directories",
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self.connect() as connection:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def add(self, records: Iterable[RunRecord]) -> None:
        """Put runs in, in one transaction; a run that is there is replaced."""
        with self._writing() as connection:
            for record in records:
                _insert(connection, record)

    def forget(self, ids: Iterable[str]) -> None:
        """Take runs out."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM runs WHERE id = ?", [(each,) for each in ids])

    def known(self) -> dict[str, tuple[str, int]]:
        """Verdict and size of the journal of every run in the index, by identifier."""
        with self.connect() as connection:
            rows = connection.execute("SELECT id, verdict, journal FROM runs").fetchall()
        return {name: (verdict, journal) for name, verdict, journal in rows}

    def start_anew(self) -> None:
        """Set a damaged file aside as ``*.damaged``, so that the next write makes a new one."""
        with self._locked():
            for suffix in ("", "-wal", "-shm"):
                old = self.path.with_name(self.path.name + suffix)
                if old.exists():
                    old.replace(old.with_name(old.name + ".damaged"))

    @property
    def damaged(self) -> bool:
        """Whether the file is there and is no database that can be read."""
        if not self.path.exists():
            return False
        try:
            with closing(self._open()) as connection:
                return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
        except sqlite3.DatabaseError as error:
            return not isinstance(error, sqlite3.OperationalError)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(self.path.name + ".lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _prepare(self) -> None:
        """Make the tables where they are missing or of another version; one process at a time does it."""
        if self.path.exists() and _version(self.path) == SCHEMA:
            return
        with self._locked():
            if self.path.exists() and _version(self.path) == SCHEMA:
                return
            with closing(self._open()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                statements = [f"DROP TABLE IF EXISTS {table};" for table in _TABLES]
                schema = (files(__package__) / "schema.sql").read_text(encoding="utf-8")
                version = f"PRAGMA user_version = {SCHEMA};"
                connection.executescript("\n".join(["BEGIN;", *statements, schema, version, "COMMIT;"]))


def _version(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=WAIT_SECONDS)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _insert(connection: sqlite3.Connection, record: RunRecord) -> None:
    connection.execute("DELETE FROM runs WHERE id = ?", (record.id,))
    row = (record.id, record.directory, record.verdict, record.started, record.finished, record.model)
    row += (record.version, record.change, record.state, record.summary, record.journal)  # type: ignore[assignment]
    connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * 11)})", row)  # noqa: S608 - placeholders
    connection.executemany(
        "INSERT INTO commits VALUES (?, ?)", [(commit, record.id) for commit in dict.fromkeys(record.commits)]
    )
    for place, step in enumerate(record.steps):
        _insert_step(connection, record.id, place, step)


def _insert_step(connection: sqlite3.Connection, run: str, place: int, step: StepRecord) -> None:
    row = (run, place, step.step, step.loop, step.level, step.variant, step.verdict, step.reason)
    row += (",".join(step.verdicts), step.seconds, step.command, step.recipe, step.boundary, step.cause)  # type: ignore[assignment]
    connection.execute(f"INSERT INTO steps VALUES ({', '.join('?' * 14)})", row)  # noqa: S608 - placeholders
    connection.executemany(
        "INSERT OR IGNORE INTO tags (name, machine) VALUES (?, ?)",
        [(metric.tag, metric.machine) for metric in step.metrics],
    )
    connection.executemany(
        "INSERT INTO metrics SELECT ?, ?, id, ?, ?, ?, ?, ?, ?, ?, ? FROM tags WHERE name = ?",
        [(run, place, *_values(metric), metric.tag) for metric in step.metrics],
    )


def _values(metric: MetricRecord) -> tuple[float | None, ...]:
    ends = (metric.first, metric.last, metric.tail)
    return (metric.points, metric.non_finite, *ends, metric.median, metric.low, metric.high)
