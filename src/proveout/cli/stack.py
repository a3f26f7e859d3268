"""``proveout stack``: isolated environments of proven versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proveout.cli import options
from proveout.domain.errors import UsageError
from proveout.domain.verdict import EXIT_STATUS, Verdict

if TYPE_CHECKING:
    from proveout.stacks.place import Place

NAME = click.argument("name", metavar="STACK")
DIR = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="PROVEOUT_STACKS",
    help="Where stacks are kept. [the user's cache: XDG_CACHE_HOME/proveout/stacks]",
)
CHECKOUT = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(name="stack")
def command() -> None:
    """Environments in which a real stack runs on a CPU: pinned, proven versions, apart from all else."""


@command.command()
@NAME
@DIR
@click.option(
    "--python", help="Interpreter to make it of; its version must be one that the stack was proven on."
)
@click.option("--bridge", type=CHECKOUT, help="Megatron-Bridge checkout in front of the wheels.")
@click.option("--mcore", type=CHECKOUT, help="Megatron-Core checkout in front of the wheels.")
@click.option("--nemo-rl", type=CHECKOUT, envvar="NEMO_RL_REPO", help="NeMo-RL checkout. [$NEMO_RL_REPO]")
@click.option("--verl", type=CHECKOUT, help="verl checkout in front of the wheels.")
@options.as_json
def install(
    name: str, directory: Path | None, python: str | None, as_json: bool, **given: Path | None
) -> int:
    """Make the environment of STACK; says size and time first, and goes on after an interruption."""
    from proveout.stacks.install import find_interpreter
    from proveout.stacks.install import install as run
    from proveout.stacks.lock import load

    loaded, place = load(name), _place(name, directory)
    roles = {role.replace("_", "-"): str(path.absolute()) for role, path in given.items() if path}
    if "nemo-rl" not in loaded.lock.roles:
        roles.pop("nemo-rl", None)
    run(place, loaded, find_interpreter(loaded, python), roles, lambda text: click.echo(text, err=as_json))
    return _say(name, directory, as_json)


@command.command()
@NAME
@DIR
@options.as_json
def check(name: str, directory: Path | None, as_json: bool) -> int:
    """Is STACK whole: versions as locked, no file missing, everything imports there? Exit status 0, or 3."""
    from proveout.stacks.check import ask, problems
    from proveout.stacks.lock import load

    loaded, place = load(name), _place(name, directory)
    if not place.ours:
        raise UsageError(
            f"stack {name} is not installed", where=str(place.root), remedy=f"proveout stack install {name}"
        )
    checkouts = place.record.checkouts
    answer = ask(place, loaded, checkouts)
    wrong = problems(answer, loaded, checkouts)
    if as_json:
        options.echo_json(
            {"stack": name, "path": str(place.root), "problems": wrong, "imports": answer.imports}
        )
    else:
        for item in answer.imports:
            click.echo(f"{item.module}: {item.error or item.file} ({item.seconds:.1f} s)")
        for problem in wrong:
            click.echo(f"{name}: {problem}", err=True)
        click.echo(f"{name}: {'not whole' if wrong else 'whole'}, Python {answer.python}, {place.root}")
    return EXIT_STATUS[Verdict.BLOCKED if wrong else Verdict.PASS]


@command.command("list")
@DIR
@options.as_json
def list_(directory: Path | None, as_json: bool) -> int:
    """The stacks there are, and which of them are installed."""
    from proveout.stacks.lock import names

    told = [_state(name, directory) for name in names()]
    if as_json:
        options.echo_json(told)
        return 0
    for item in told:
        size = f"{item['megabytes'] / 1000:.1f} GB"
        click.echo(f"{item['stack']:12} {item['state']:14} {size:>7}  {item['about']}")
    return 0


@command.command()
@NAME
@DIR
def remove(name: str, directory: Path | None) -> int:
    """Delete the environment of STACK."""
    from proveout.stacks.install import remove as run
    from proveout.stacks.lock import load

    load(name)
    run(_place(name, directory))
    click.echo(f"{name}: removed")
    return 0


def _place(name: str, directory: Path | None) -> Place:
    from proveout.stacks.place import Place, root

    return Place(root(os.environ, directory), name)


def _state(name: str, directory: Path | None) -> dict[str, Any]:
    from proveout.stacks.lock import load

    loaded, place = load(name), _place(name, directory)
    record = place.record if place.ours else None
    state = "not installed"
    if record:
        state = (
            "begun" if not record.verified else "installed" if record.digest == loaded.digest else "outdated"
        )
    megabytes = place.size // 1_000_000 if record else loaded.lock.megabytes
    return {
        "stack": name,
        "state": state,
        "path": str(place.root),
        "python": str(place.python) if record else "",
        "megabytes": megabytes,
        "minutes": loaded.lock.minutes,
        "about": loaded.lock.about,
        "checkouts": record.checkouts if record else {},
    }


def _say(name: str, directory: Path | None, as_json: bool) -> int:
    told = _state(name, directory)
    if as_json:
        options.echo_json(told)
    else:
        click.echo(
            f"{name}: {told['state']}, {told['megabytes'] / 1000:.1f} GB; its interpreter is {told['python']}"
        )
    return 0
