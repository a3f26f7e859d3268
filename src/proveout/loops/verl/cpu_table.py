"""The table of platform cpu (``cpu.yaml``), and the variants that a request means."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from proveout.domain.errors import UsageError, nearest
from proveout.domain.step import LevelRequest
from proveout.domain.tree import parse_yaml
from proveout.loops.verl.variants import table as gpu_table


class From(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The checkpoint that a variant resumes: of which variant, after which step."""

    variant: str
    step: int


class Variant(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """One way to run one level; see ``cpu.yaml`` for the fields."""

    level: int
    name: str
    title: str
    claim: str
    minutes: float
    steps: int
    core: bool = False
    critic: bool = False
    peft: bool = True
    signal: bool = False
    experts: bool = False
    gpus: int = 1
    family: str = ""
    sizes: dict[str, int] = {}
    words: tuple[str, ...] = ()
    saves: tuple[int, ...] = ()
    from_: From | None = None
    unsupported: str = ""
    limitations: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words that every run shares, those of a critic and of each engine, and all variants."""

    levels: dict[int, str]
    limitations: tuple[str, ...]
    base: tuple[str, ...]
    critic: tuple[str, ...]
    engine: tuple[str, ...]
    experts: tuple[str, ...]
    agreement: tuple[dict[str, Any], ...]
    variants: tuple[Variant, ...]


@cache
def table() -> Table:
    """The table of platform cpu."""
    return msgspec.convert(parse_yaml((files(__package__) / "cpu.yaml").read_text()), Table)


def choose(request: LevelRequest) -> Iterator[Variant]:
    """The variants that a request for a level means, with the saving one before the one that resumes.

    Raises UsageError that names the nearest variant of the level.
    """
    of_level = [variant for variant in table().variants if variant.level == request.level]
    if not of_level:
        title = gpu_table().levels.get(request.level, "")
        yield Variant(
            level=request.level,
            name=request.variant,
            title=title,
            claim="",
            minutes=0,
            steps=0,
            unsupported=f"platform cpu has no level {request.level} ({title}): it needs GPUs",
        )
        return
    if request.variant == "default":
        yield from (variant for variant in of_level if variant.core)
        return
    names = [variant.name for variant in of_level]
    if request.variant != "all" and request.variant not in names:
        raise UsageError(
            f"verl level {request.level} has no variant {request.variant!r} on platform cpu"
            f"{nearest(request.variant, names)}",
            remedy=f"variants: default, all, {', '.join(names)}",
        )
    for variant in of_level:
        needed = any(
            v.name == request.variant and v.from_ and v.from_.variant == variant.name for v in of_level
        )
        if needed or request.variant in ("all", variant.name):
            yield variant
