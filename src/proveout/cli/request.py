"""The options that say what is to be planned, shared by every command that plans."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proveout.cli import options
from proveout.domain.errors import UsageError, nearest

if TYPE_CHECKING:
    from proveout.flow.planning import PlanRequest

Function = TypeVar("Function", bound=Callable[..., Any])

CHOICE = "[LOOP:]LEVELS[/VARIANT]"
ROLES = ("bridge", "mcore", "nemo-rl", "verl")
_OPTIONS = (
    click.option("--bridge", help="Megatron-Bridge checkout under test. [$BRIDGE_REPO]"),
    click.option(
        "--mcore", help="Megatron-Core checkout under test. [$MCORE_REPO; else the Bridge's submodule]"
    ),
    click.option("--nemo-rl", help="NeMo-RL checkout. [$NEMO_RL_REPO]"),
    click.option("--verl", help="verl checkout. [$VERL_REPO]"),
    click.option("--base", help="What the change is compared with. [the merge base with the default branch]"),
    click.option("--patch", help="The change is this patch file."),
    click.option("--whole", is_flag=True, help="The whole checkout is under test."),
    click.option("--loop", "loops", callback=options.words, help="Only these loops, comma-separated."),
    click.option(
        "--level", "levels", multiple=True, metavar=CHOICE, help="These instead of what the change asks for."
    ),
    click.option("--add", multiple=True, metavar=CHOICE, help="These besides."),
    click.option(
        "--model", help="Checkpoint to run with: a local directory, or ORG/NAME where the loop knows it."
    ),
    click.option(
        "--gpus", default=0, type=click.IntRange(0), help="GPUs at hand; steps that need more are skipped."
    ),
    click.option(
        "--backend", help="The policy of loop bench: hf or megatron. [megatron with --bridge, else hf]"
    ),
    click.option("--platform", help="Run real stacks on this platform: cpu, for loops verl and nemo-rl."),
    click.option("--seed", default=0, type=int, show_default=True),
    click.option(
        "--set", "settings", multiple=True, metavar="[LOOP:]NAME=VALUE", help="An option of the loop."
    ),
)


def planning_options(function: Function) -> Function:
    """Give a command the options that ``plan_request`` reads."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def plan_request(asked: dict[str, Any], paths: tuple[str, ...], overrides: tuple[str, ...]) -> PlanRequest:
    """The request that the parsed options make. Raises UsageError for what was written wrongly."""
    from proveout.flow.planning import PlanRequest
    from proveout.plan.choices import parse_choices

    checkouts = located(asked)
    return PlanRequest(
        checkouts=checkouts,
        loops=asked["loops"],
        base=asked["base"],
        patch=asked["patch"],
        paths=paths,
        whole=asked["whole"],
        model=asked["model"],
        gpus=asked["gpus"],
        seed=asked["seed"],
        levels=parse_choices(asked["levels"], "--level"),
        add=parse_choices(asked["add"], "--add"),
        overrides=overrides,
        options=_with_backend(
            asked["backend"],
            _on_platform(
                asked["platform"],
                _settings(asked["settings"], asked["loops"] or tuple(checkouts)),
                asked["loops"] or tuple(checkouts),
            ),
        ),
    )


def _on_platform(
    platform: str | None, settings: dict[str, dict[str, str]], loops: tuple[str, ...]
) -> dict[str, dict[str, str]]:
    """The settings with the platform for every loop that runs a real stack on one."""
    real = [name for name in loops if name in ("nemo-rl", "verl")]
    if platform and not real:
        raise UsageError("no loop of the plan runs on a platform", where="--platform", remedy="--loop verl")
    return settings | {name: {**settings.get(name, {}), "platform": platform} for name in real if platform}


def _with_backend(backend: str | None, settings: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The settings with the backend for loop bench; planning refuses it where that loop is not in the plan."""
    return settings | ({"bench": {**settings.get("bench", {}), "backend": backend}} if backend else {})


def located(asked: dict[str, Any]) -> dict[str, str]:
    """Checkouts by role, from flags, then the environment, then ``proveout.toml``."""
    from proveout.plan.checkouts import locate
    from proveout.plan.settings import read_settings

    flags = {role: asked[role.replace("-", "_")] for role in ROLES}
    return locate(flags, os.environ, read_settings(Path.cwd()))


def _settings(words: tuple[str, ...], loops: tuple[str, ...]) -> dict[str, dict[str, str]]:
    known = [name for name in loops if name in ("nemo-rl", "verl", "trl", "bench")]
    found: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        loop, colon, option = name.partition(":")
        if not equals or (colon and not option):
            raise UsageError(f"{word!r} is no setting", where="--set", remedy="write [LOOP:]NAME=VALUE")
        if not colon:
            loop, option = ("verl" if name.isupper() and "verl" in known else ""), name
            loop = loop or (known[0] if len(known) == 1 else "")
        if not loop:
            raise UsageError(
                f"{word!r} does not say for which loop", where="--set", remedy=f"write nemo-rl:{word}"
            )
        if colon and loop not in known:
            raise UsageError(f"loop {loop!r} is not in the plan{nearest(loop, known)}", where="--set")
        found.setdefault(loop, {})[option] = value
    return found
