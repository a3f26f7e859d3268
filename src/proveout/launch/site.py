"""What a site says of launching: the table ``[launch]`` of proveout.toml, with what the command line adds to it.

Keys that several engines read stand in the table itself; each engine has a table of its own below it
(``[launch.slurm]``), whose keys are the fields of the structure that ``TABLES`` names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proveout.domain.errors import UsageError, nearest

T = TypeVar("T")
TABLE = "launch"
TABLES: dict[str, str] = {
    "container": "proveout.launch.container.settings:ContainerSettings",
    "ray": "proveout.launch.ray.settings:RaySettings",
    "slurm": "proveout.launch.slurm.settings:SlurmSettings",
    "srun": "proveout.launch.launchers.srun:SrunSettings",
    "ray-sub": "proveout.launch.launchers.ray_sub:RaySubSettings",
}
"""Engine -> the structure of its table. A new engine with settings of its own is one line here."""


class LaunchSite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How attempts are started.

    ``image`` is what containers are made from. ``mounts`` are ``HOST[:CONTAINER[:OPTIONS]]`` beside the checkouts
    and the run directory, which are always mounted. ``workdir`` is the directory inside the container. ``env`` are
    names of variables that are handed into it beside the step's own. ``setup`` are commands that run before, in the
    same container step (``-`` before one: its failure does not matter). ``mcore_copy`` is a node-local directory to
    which Megatron-Core is copied and built before the command, in the same step, for the interpreter
    ``mcore_python``. ``tables`` are the engines' own.
    """

    scheduler: str = "local"
    launcher: str = "process"
    image: str = ""
    mounts: tuple[str, ...] = ()
    workdir: str = ""
    env: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    mcore_copy: str = ""
    mcore_python: str = "python3"
    tables: dict[str, dict[str, Any]] = {}

    def as_table(self) -> dict[str, Any]:
        """The ``[launch]`` table that gives this site."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        tables = plain.pop("tables")
        plain |= tables
        return plain

    def table(self, name: str, kind: type[T]) -> T:
        """The settings of one engine. Raises UsageError where a value is of the wrong kind."""
        return _convert(self.tables.get(name, {}), kind, f"{TABLE}.{name}")


def from_table(data: Mapping[str, Any], where: str = "") -> LaunchSite:
    """The site from a ``[launch]`` table. Raises UsageError for a key that nothing knows, naming the nearest."""
    own = [name for name in LaunchSite.__struct_fields__ if name != "tables"]
    values: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    place = f"{where}, key {TABLE}" if where else TABLE
    for written, value in data.items():
        key = written.replace("-", "_")
        table = written.replace("_", "-")
        if table in TABLES:
            if not isinstance(value, dict):
                raise UsageError(f"{written} is no table", where=place, remedy=f"write [{TABLE}.{written}]")
            tables[table] = _known(value, structure(table), f"{place}.{written}")
        elif key in own:
            values[key] = value
        else:
            shown = [name.replace("_", "-") for name in own]
            raise UsageError(f"no key {written!r}{nearest(written, [*shown, *TABLES])}", where=place)
    return _convert(values | {"tables": tables}, LaunchSite, place)


def read_site(folder: Path, file: str) -> dict[str, Any]:
    """The raw ``[launch]`` table of ``proveout.toml``; empty without one. Raises UsageError where it cannot be read."""
    path = folder / file
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    table = data.get(TABLE, {})
    if not isinstance(table, dict):
        raise UsageError(f"{TABLE} is no table", where=str(path), remedy=f"write [{TABLE}] and its keys")
    from_table(table, str(path))
    return table


def with_settings(table: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` with settings of the command line over it, by dotted key (``slurm.partition``)."""
    merged: dict[str, Any] = {
        key: dict(value) if isinstance(value, dict) else value for key, value in table.items()
    }
    for word, value in words.items():
        place, _, key = word.rpartition(".")
        target = merged
        if place:
            same = [name for name in merged if name.replace("_", "-") == place.replace("_", "-")]
            target = merged.setdefault(same[0] if same else place, {})
        for name in [name for name in target if name.replace("_", "-") == key.replace("_", "-")]:
            del target[name]
        target[key] = value
    return merged


def setting(word: str) -> tuple[str, Any]:
    """``KEY=VALUE`` of the command line; the value as TOML where it is, else as text. Raises UsageError."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise UsageError(f"{word!r} is no setting", where="--launch", remedy="write KEY=VALUE")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def structure(name: str) -> type[Any]:
    """The structure of an engine's table."""
    module, _, kind = TABLES[name].partition(":")
    found: type[Any] = getattr(import_module(module), kind)
    return found


def _known(table: Mapping[str, Any], kind: type[Any], where: str) -> dict[str, Any]:
    fields = kind.__struct_fields__
    found = {}
    for written, value in table.items():
        key = written.replace("-", "_")
        if key not in fields:
            shown = [name.replace("_", "-") for name in fields]
            raise UsageError(f"no key {written!r}{nearest(written, shown)}", where=where)
        found[key] = value
    _convert(found, kind, where)
    return found


def _convert(values: Mapping[str, Any], kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where=where) from error
