"""``proveout history export``."""

from __future__ import annotations

import csv
import io
import os
import secrets
from pathlib import Path
from typing import Any

import click

from proveout.cli.history_options import Asked, filters
from proveout.domain.errors import UsageError, nearest

TABLES = ("metrics", "steps", "runs")
SUFFIXES = (".csv", ".parquet")


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--table", type=click.Choice(TABLES), default="metrics", show_default=True)
@click.option("--tag", "tags", multiple=True, help="Only these metrics; may hold * and ?.")
@filters
def command(file: Path, table: str, tags: tuple[str, ...], asked: Asked) -> int:
    """Write the history to FILE: CSV or Parquet by its suffix, CSV to standard output for -.

    The tables: one row for each metric of each step of each run (a sum of its training steps), one for each step,
    or one for each run. Parquet needs pyarrow, which is in the extra proveout[data].
    """
    from proveout.store.history import queries

    if str(file) != "-" and file.suffix not in SUFFIXES:
        raise UsageError(
            f"a file of which format?{nearest(file.suffix, SUFFIXES)}",
            where=str(file),
            remedy="name it *.csv or *.parquet",
        )
    if file.suffix == ".parquet":
        _pyarrow(file)
    index = asked.index()
    if table == "metrics":
        rows: list[Any] = list(queries.metrics(index, asked.filter, tags))
    else:
        rows = list(getattr(queries, table)(index, asked.filter))
    _write(file, _columns(table), [_plain(row) for row in rows])
    if str(file) != "-":
        click.echo(f"{len(rows)} rows written to {file}", err=True)
    return 0


def _columns(table: str) -> tuple[str, ...]:
    from proveout.store.history.records import MetricRow, RunRow, StepRow

    return {"metrics": MetricRow, "steps": StepRow, "runs": RunRow}[table].__struct_fields__


def _plain(row: Any) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in row.__struct_fields__}
    return {name: "; ".join(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _write(file: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    if str(file) == "-":
        click.echo(_csv(columns, rows), nl=False)
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        if file.suffix == ".csv":
            temporary.write_text(_csv(columns, rows), encoding="utf-8")
        else:
            _parquet(temporary, columns, rows, str(file))
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot be written: {error.strerror or error}", where=str(file)) from None


def _csv(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parquet(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]], name: str) -> None:
    pyarrow, parquet = _pyarrow(Path(name))
    table = {column: [row[column] for row in rows] for column in columns}
    parquet.write_table(pyarrow.table(table), path)


def _pyarrow(file: Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            f"Parquet needs pyarrow, which is not there ({error})",
            where=str(file),
            remedy="pip install 'proveout[data]', or export to a .csv file",
        ) from None
    return pyarrow, parquet
