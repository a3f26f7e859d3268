"""The options that say how attempts are started, shared by every command that starts some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from proveout.launch import Launch

Function = TypeVar("Function", bound=Callable[..., Any])

_KEYS = {
    "scheduler": "scheduler",
    "launcher": "launcher",
    "image": "image",
    "mount": "mounts",
    "account": "slurm.account",
    "partition": "slurm.partition",
    "qos": "slurm.qos",
    "gres": "slurm.gres",
    "time_limit": "slurm.time",
}
_OPTIONS = (
    click.option("--scheduler", help="Who allocates: local, slurm, ray. [local]"),
    click.option("--launcher", help="How it is wrapped: process, container, srun, ray.sub. [process]"),
    click.option("--image", help="What containers are made from."),
    click.option("--mount", multiple=True, metavar="HOST[:CONTAINER]", help="Mounted besides the checkouts."),
    click.option("--account", help="Slurm: who pays."),
    click.option("--partition", help="Slurm: where."),
    click.option("--qos", help="Slurm: quality of service."),
    click.option("--gres", help="Slurm: generic resources. [gpu:N where a step needs N]"),
    click.option("--time-limit", metavar="D-HH:MM:SS", help="Slurm: the most that a job may ask for."),
    click.option(
        "--launch",
        "launch_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any key of [launch] in proveout.toml, as slurm.exclusive=true.",
    ),
)


def launch_options(function: Function) -> Function:
    """Give a command the options that ``launch_of`` reads."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def launch_of(asked: dict[str, Any], earlier: dict[str, Any] | None = None) -> Launch:
    """What starts attempts: options over what an earlier process recorded, or over ``proveout.toml`` where none did.

    The options are taken out of ``asked``. Raises UsageError for what is wrong in them.
    """
    from proveout import launch
    from proveout.launch.site import from_table, read_site, setting, with_settings
    from proveout.plan.settings import FILE

    words: dict[str, Any] = {}
    for option, key in _KEYS.items():
        value = asked.pop(option, None)
        if value:
            words[key] = list(value) if isinstance(value, tuple) else value
    words |= dict(setting(word) for word in asked.pop("launch_settings", ()))
    table = earlier if earlier is not None else read_site(Path.cwd(), FILE)
    return launch.launch_for(from_table(with_settings(table, words)))
