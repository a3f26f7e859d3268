"""What a resolved configuration leaves untested, by the table of ``limits.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value that lowers what was tested; see ``limits.toml``."""

    key: str
    value: Any
    says: str
    where: dict[str, Any] = {}


@cache
def table() -> dict[str, list[Limit]]:
    """Limits by loop."""
    text = files(__package__).joinpath("limits.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, list[Limit]])


def limitations(loop: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """The limitations that a flattened configuration of ``loop`` shows."""
    return tuple(
        limit.says
        for limit in table().get(loop, ())
        if all(
            _same(config.get(key), value) for key, value in {limit.key: limit.value, **limit.where}.items()
        )
    )


def _same(found: Any, value: Any) -> bool:
    return type(found) is type(value) and bool(found == value)
