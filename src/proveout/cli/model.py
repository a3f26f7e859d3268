"""``proveout model``: models on this disk, looked at, fetched or made."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proveout.domain.errors import UsageError
from proveout.domain.verdict import EXIT_STATUS, Verdict

if TYPE_CHECKING:
    from proveout.assets.snapshot import Snapshot

FAMILIES = ("qwen2", "qwen3", "llama", "qwen3-moe")
TARGET = click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to write."
)
PYTHON = click.option("--python", default=sys.executable, help="Interpreter with the bench packages.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


@click.group(name="model")
def command() -> None:
    """Look at, fetch or make a model."""


@command.group()
def snapshot() -> None:
    """Look at a model on this disk: a directory, or ORG/NAME in the hub's cache."""


@snapshot.command()
@click.argument("model")
@JSON
def check(model: str, as_json: bool) -> int:
    """Is it whole: configuration, every shard of its index, tokenizer? Exit status 0, or 3 when not."""
    return _say(_inspect(model), as_json)


@snapshot.command()
@click.argument("model")
def path(model: str) -> int:
    """Print the directory of a whole model, as for MODEL_PATH. Exit status 3 when it is not whole."""
    found = _inspect(model)
    if not found.whole:
        return _say(found, as_json=False, err=True)
    click.echo(found.path)
    return 0


@command.command()
@click.argument("model")
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to keep it."
)
@click.option("--revision", help="Branch, tag or commit. [main]")
@JSON
def fetch(model: str, to: Path, revision: str | None, as_json: bool) -> int:
    """Fetch ORG/NAME from the hub, once; the same command goes on after an interruption."""
    from proveout.assets.fetch import fetch as run

    return _say(run(model, to, os.environ, revision), as_json)


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@TARGET
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the configuration."
)
@click.option("--seed", default=0, show_default=True)
@PYTHON
@JSON
def dummy(config: Path, output: Path, changes: tuple[str, ...], seed: int, python: str, as_json: bool) -> int:
    """Random weights and a tokenizer for the config.json CONFIG. What runs on it tests no real checkpoint."""
    from proveout.assets.make_model import dummy as make

    return _say(make(config, output, changes, seed, python), as_json)


@command.command()
@TARGET
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--family",
    type=click.Choice(FAMILIES),
    help="A family that the real loops know, with a chat template, in place of the bench loop's own model.",
)
@click.option(
    "--warm",
    default=0,
    metavar="STEPS",
    type=click.IntRange(0),
    help="Supervised steps on one-digit sums, so that rewards are not all zero.",
)
@click.option("--seed", default=0, type=int, help="Seed of weights and warm start; with --family.")
@PYTHON
@JSON
def tiny(
    output: Path,
    settings: tuple[str, ...],
    family: str | None,
    warm: int,
    seed: int,
    python: str,
    as_json: bool,
) -> int:
    """A tiny model as a checkpoint: the bench loop's own, or one of a family.

    \b
    proveout model tiny -o DIR seed=1
    proveout model tiny --family qwen3 --warm 150 -o DIR num_hidden_layers=4
    """
    from proveout.assets import make_model

    if family:
        return _say(make_model.family(family, output, settings, seed=seed, warm=warm, python=python), as_json)
    if warm or seed:
        raise UsageError("--warm and --seed are for --family", remedy="name a family, or write seed=1")
    return _say(make_model.tiny(output, settings, python), as_json)


def _inspect(model: str) -> Snapshot:
    from proveout.assets import places
    from proveout.assets.snapshot import inspect

    return inspect(model, places.hf_hub(os.environ))


def _say(found: Snapshot, as_json: bool, err: bool = False) -> int:
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif found.whole:
        click.echo(f"{found.model}: whole, {found.files} files, {found.size / 1e6:.1f} MB at {found.path}")
    else:
        for problem in found.problems:
            click.echo(f"{found.model}: {problem.what} [{problem.path}]", err=err)
    return EXIT_STATUS[Verdict.PASS if found.whole else Verdict.BLOCKED]
