"""The variant table of NeMo-RL: what each level can run."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import Criterion, Source
from proveout.domain.tree import parse_yaml


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to run one level; see ``variants.yaml`` for the fields."""

    level: int
    name: str
    title: str
    claim: str
    minutes: float
    core: bool = False
    script: str = ""
    entry: str = ""
    config: str = ""
    recipe: bool = False
    pattern: str = ""
    exclude: str = ""
    want: dict[str, int] = {}
    overrides: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    backend: dict[str, Any] = {}
    criteria: tuple[Criterion, ...] = ()
    metrics: tuple[Source, ...] = ()
    limitations: tuple[str, ...] = ()
    gpus: int = 2
    steps: int | None = None
    timeout: float = 0
    policy_check: bool = True
    instead_of: str = ""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Level titles, and all variants in order."""

    levels: dict[int, str]
    variants: tuple[Variant, ...]


class Surface(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Unit tests of one surface of NeMo-RL."""

    level: int
    surface: str
    files: tuple[str, ...]
    minutes: float
    was: str = ""


class Rename(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key that is gone, and what to write now."""

    key: str
    now: str


def _data(name: str) -> Any:
    return parse_yaml((files(__package__) / name).read_text())


@cache
def table() -> Table:
    """The level and variant table."""
    return msgspec.convert(_data("variants.yaml"), Table)


@cache
def surfaces() -> tuple[Surface, ...]:
    """The unit test surfaces."""
    return msgspec.convert(_data("units.yaml"), tuple[Surface, ...])


@cache
def renames() -> tuple[Rename, ...]:
    """The renamed and dropped keys."""
    return msgspec.convert(_data("renames.yaml"), tuple[Rename, ...])


def level_of(script: str) -> int:
    """The first level that runs a functional script; 0 where none does."""
    return next((variant.level for variant in table().variants if variant.script == script), 0)


def choose(level: int, name: str) -> tuple[Variant, ...]:
    """The variants that a request for a level means: the core ones for ``default``, else the one of that
    name.

    Raises UsageError that names the nearest variant of the level.
    """
    of_level = [variant for variant in table().variants if variant.level == level]
    if name == "default":
        return tuple(variant for variant in of_level if variant.core)
    if name == "all":
        return tuple(of_level)
    found = tuple(variant for variant in of_level if variant.name == name)
    if not found:
        names = [variant.name for variant in of_level]
        raise UsageError(
            f"nemo-rl level {level} has no variant {name!r}{nearest(name, names)}",
            remedy=f"variants: default, all, {', '.join(names)}",
        )
    return found
