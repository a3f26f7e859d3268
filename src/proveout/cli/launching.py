"""The options that say how attempts are started, shared by every command that starts some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from proveout.flow.policy import Budget
    from proveout.launch import Launch, LaunchSite

BUDGET = ("jobs", "max_gpus", "max_nodes")
Function = TypeVar("Function", bound=Callable[..., Any])

_KEYS = {
    "scheduler": "scheduler",
    "launcher": "launcher",
    "image": "image",
    "mount": "mounts",
    "ray_address": "ray.address",
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
    click.option(
        "--ray-address", metavar="URL", help="Ray: the Jobs API of a cluster. [a cluster of its own]"
    ),
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


def budget_options(function: Function) -> Function:
    """Give a command the options that ``budget_of`` reads."""
    for option in reversed(
        (
            click.option(
                "--jobs",
                type=click.IntRange(1),
                default=1,
                show_default=True,
                help="Attempts that may run side by side.",
            ),
            click.option("--max-gpus", type=click.IntRange(0), help="GPUs that they may use in all."),
            click.option("--max-nodes", type=click.IntRange(1), help="Nodes that they may use in all."),
        )
    ):
        function = option(function)
    return function


def budget_of(asked: dict[str, Any]) -> Budget:
    """The budget that the options give; they are taken out of ``asked``."""
    from proveout.flow.policy import Budget

    jobs, gpus, nodes = (asked.pop(name) for name in BUDGET)
    return Budget(jobs=jobs, gpus=gpus, nodes=nodes)


def budget_words(budget: Budget) -> list[str]:
    """The options that give this budget, for a process that goes on with the run."""
    asked = {"--jobs": budget.jobs, "--max-gpus": budget.gpus, "--max-nodes": budget.nodes}
    return [word for option, value in asked.items() if value is not None for word in (option, str(value))]


def stop_words(stop_at_first: bool) -> list[str]:
    """The option that makes such a process stop at the first step that fails, where it is to."""
    return ["--stop-at-first"] if stop_at_first else []


def launch_of(asked: dict[str, Any], earlier: dict[str, Any] | None = None) -> Launch:
    """What starts attempts: options over what an earlier process recorded, or over ``proveout.toml`` where none did.

    The options are taken out of ``asked``. Raises UsageError for what is wrong in them.
    """
    from proveout import launch

    return launch.launch_for(site_of(asked, earlier))


def site_of(asked: dict[str, Any], earlier: dict[str, Any] | None = None) -> LaunchSite:
    """The settings alone, in the same order."""
    from proveout.launch.site import from_table, read_site, setting, with_settings
    from proveout.plan.settings import FILE

    words: dict[str, Any] = {}
    for option, key in _KEYS.items():
        value = asked.pop(option, None)
        if value:
            words[key] = list(value) if isinstance(value, tuple) else value
    words |= dict(setting(word) for word in asked.pop("launch_settings", ()))
    table = earlier if earlier is not None else read_site(Path.cwd(), FILE)
    return from_table(with_settings(table, words))
