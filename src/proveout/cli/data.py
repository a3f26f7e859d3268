"""``proveout data``: data sets on this disk, in the shapes that the loops read."""

from __future__ import annotations

import os
from pathlib import Path

import click

TARGET = click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to write."
)


@click.group(name="data")
def command() -> None:
    """Write a training and a test set as a loop reads them."""


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
@click.option(
    "--for",
    "loop",
    type=click.Choice(("verl", "nemo-rl", "trl")),
    default="verl",
    show_default=True,
    help="The loop that is to read it: parquet for verl, JSON lines for the others.",
)
@click.option(
    "--sums", is_flag=True, help="One-digit sums for verl too, as a warm-started tiny model knows them."
)
@click.option("--rows", default=64, show_default=True, type=click.IntRange(1), help="Training rows.")
@click.option("--seed", default=0, show_default=True)
@TARGET
def toy(loop: str, sums: bool, rows: int, seed: int, output: Path) -> int:
    """A small valid set of arithmetic; a quarter as many test rows.

    For NeMo-RL and TRL these are one-digit sums, the same that 'proveout model tiny --warm' teaches.
    """
    from proveout.assets import gsm8k
    from proveout.assets import sums as easy

    for split, count in (("train", rows), ("test", max(rows // 4, 1))):
        if loop == "verl":
            file = output / f"{split}.parquet"
            made = list(easy.verl(split, count, seed)) if sums else gsm8k.toy(split, count, seed)
            written = gsm8k.write(file, made)
        else:
            file = output / f"{split}.jsonl"
            make = easy.nemo_rl if loop == "nemo-rl" else easy.trl
            written = easy.write_lines(file, make(split, count, seed))
        click.echo(f"{file}: {written} rows")
    return 0
