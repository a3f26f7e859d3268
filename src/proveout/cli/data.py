"""``proveout data``: data sets on this disk, in the shape that verl reads."""

from __future__ import annotations

import os
from pathlib import Path

import click

TARGET = click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to write."
)


@click.group(name="data")
def command() -> None:
    """Write train.parquet and test.parquet as verl reads them."""


@command.command()
@click.option(
    "--from", "source", type=click.Path(path_type=Path), required=True, help="Directory of the raw files."
)
@click.option("--verl", help="Take the instruction from this verl checkout. [$VERL_REPO]")
@TARGET
def gsm8k(source: Path, verl: str | None, output: Path) -> int:
    """GSM8K from raw files: train and test as JSON lines or parquet with questions and answers."""
    from proveout.assets import gsm8k as data

    instruction = data.instruction_of(verl or os.environ.get("VERL_REPO"))
    read = {split: data.rows_of(data.raw_file(source, split), split, instruction) for split in data.SPLITS}
    for split, rows in read.items():
        file = output / f"{split}.parquet"
        click.echo(f"{file}: {data.write(file, rows)} rows")
    return 0


@command.command()
@click.option("--rows", default=64, show_default=True, type=click.IntRange(1), help="Training rows.")
@click.option("--seed", default=0, show_default=True)
@TARGET
def toy(rows: int, seed: int, output: Path) -> int:
    """A small valid set of one-step arithmetic; a quarter as many test rows."""
    from proveout.assets import gsm8k as data

    for split, count in (("train", rows), ("test", max(rows // 4, 1))):
        file = output / f"{split}.parquet"
        click.echo(f"{file}: {data.write(file, data.toy(split, count, seed))} rows")
    return 0
