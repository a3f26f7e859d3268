"""The variant table of verl: what each level can run."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import Criterion
from proveout.domain.tree import parse_yaml


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to run one level; see ``variants.yaml`` for the fields.

    ``share`` names the checkpoint directory that it shares with other variants; ``saves`` the step that it
    must save;
    ``group`` stands for other variants; ``own_model`` keeps its model whatever the plan's is; ``requires`` names
    variables without which its script stops at once.
    """

    level: int
    name: str
    title: str
    claim: str
    minutes: float
    core: bool = False
    env: dict[str, str] = {}
    overrides: tuple[str, ...] = ()
    script: str = ""
    needs: str = ""
    share: str = ""
    saves: int = 0
    group: tuple[str, ...] = ()
    dummy: bool = False
    dummy_config: str = ""
    own_model: bool = False
    unsupported: str = ""
    requires: tuple[str, ...] = ()
    gpus: int = 0
    timeout: float = 0
    backend: dict[str, Any] = {}
    criteria: tuple[Criterion, ...] = ()
    limitations: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wrapper, its configuration, its base environment, level titles, and all variants in order."""

    wrapper: str
    config_dir: str
    config_name: str
    levels: dict[int, str]
    base: dict[str, str]
    variants: tuple[Variant, ...]


def required() -> frozenset[str]:
    """Variables that some variant's script needs and the wrapper does not have."""
    return frozenset(name for variant in table().variants for name in variant.requires)


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wrapper variables that are known, and renamed names."""

    known: frozenset[str]
    renames: dict[str, str]


def _data(name: str) -> Any:
    return parse_yaml((files(__package__) / name).read_text())


@cache
def table() -> Table:
    """The level and variant table."""
    return msgspec.convert(_data("variants.yaml"), Table)


@cache
def known() -> Known:
    """The known variables."""
    return msgspec.convert(_data("variables.yaml"), Known)


def choose(level: int, name: str) -> tuple[Variant, ...]:
    """The variants that a request for a level means: the core ones for ``default``, else the one of that
    name.

    Raises UsageError that names the nearest variant of the level.
    """
    of_level = [variant for variant in table().variants if variant.level == level]
    plain = tuple(variant for variant in of_level if not variant.group)
    if name == "default":
        return tuple(variant for variant in plain if variant.core)
    if name == "all":
        return plain
    found = next((variant for variant in of_level if variant.name == name), None)
    if found is None:
        names = [variant.name for variant in of_level]
        raise UsageError(
            f"verl level {level} has no variant {name!r}{nearest(name, names)}",
            remedy=f"variants: default, all, {', '.join(names)}",
        )
    wanted = found.group or ((found.needs, name) if found.needs else (name,))
    return tuple(variant for variant in plain if variant.name in wanted)
