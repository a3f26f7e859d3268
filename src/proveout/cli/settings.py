"""Defaults of the commands' options from ``proveout.toml``: one table for each command, keys as its options.

An option given on the command line comes first, then its environment variable, then this file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from proveout.cli.commands import COMMANDS
from proveout.domain.errors import UsageError, nearest
from proveout.plan.settings import FILE

STATE_DIR = "state-dir"
_OF_THE_FILE = ("checkouts", "launch", STATE_DIR)


def defaults(folder: Path, name: str, ctx: click.Context) -> dict[str, Any]:
    """The ``default_map`` for command ``name``. Raises UsageError for a key that nothing knows."""
    path = folder / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    known = (*_OF_THE_FILE, *COMMANDS)
    for key in data:
        if key not in known:
            raise UsageError(f"no key {key!r}{nearest(key, known)}", where=str(path))
    group = ctx.command
    command = group.get_command(ctx, name) if isinstance(group, click.Group) else None
    if command is None:
        return {}
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{name} is no table", where=str(path), remedy=f"write [{name}] and its options")
    found = _table(command, table, f"{path}, key {name}", ctx)
    if STATE_DIR in data:
        found = _with_state_dir(command, found, str(data[STATE_DIR]), ctx)
    return {name: found}


def _table(command: click.Command, table: dict[str, Any], where: str, ctx: click.Context) -> dict[str, Any]:
    options = _options(command)
    subcommands = command.list_commands(ctx) if isinstance(command, click.Group) else []
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(command, click.Group) and key in subcommands and isinstance(value, dict):
            inner = command.get_command(ctx, key)
            found[key] = _table(inner, value, f"{where}.{key}", ctx) if inner is not None else {}
        elif key in options:
            found[str(options[key].name)] = _value(options[key], value, f"{where}.{key}")
        else:
            raise UsageError(f"no option {key!r}{nearest(key, [*options, *subcommands])}", where=where)
    return found


def _options(command: click.Command) -> dict[str, click.Option]:
    return {
        option.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option)
        for option in param.opts
        if option.startswith("--")
    }


def _value(option: click.Option, value: Any, where: str) -> Any:
    """A TOML value as the command line would give it."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{value!r} is neither true nor false", where=where)
        return value
    if isinstance(value, (dict, bool)):
        raise UsageError(f"{value!r} is no value of this option", where=where)
    words = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return words if option.multiple else ",".join(words)


def _with_state_dir(
    command: click.Command, found: dict[str, Any], value: str, ctx: click.Context
) -> dict[str, Any]:
    if STATE_DIR in _options(command):
        found = {"state_dir": value} | found
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None:
                found[name] = _with_state_dir(inner, found.get(name, {}), value, ctx)
    return found
