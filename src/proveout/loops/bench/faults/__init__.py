"""The fault catalogue of the bench loop: what is injected, where, which boundary it belongs to, whence it comes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import msgspec
import yaml

from proveout.domain.errors import UsageError, nearest
from proveout.domain.finding import Boundary
from proveout.loops.bench.table import table

RESUME = "lora-resume"


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different with another backend: what names the fault there, the expected boundary, or why it is
    ``not_for`` that backend at all."""

    what: str = ""
    boundary: Boundary | tuple[Boundary, ...] | None = None
    not_for: str = ""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. ``step`` is the variant of ``level`` whose run carries it; ``stage`` "save" takes the run before.

    ``words`` inject it (by default ``fault.inject`` with ``inject`` or the id); ``extra`` are words of the run itself,
    under which a sound run passes; ``prepare`` names files that are made first; ``invisible`` is the reason where the
    level cannot show it; ``fresh`` needs an interpreter of its own; ``not_for`` is why the backend has no such place.
    """

    id: str
    group: str
    what: str
    seam: str
    level: int
    step: str
    boundary: tuple[Boundary, ...]
    source: str
    words: tuple[str, ...]
    extra: tuple[str, ...] = ()
    env: dict[str, str] = {}
    prepare: str = ""
    stage: str = ""
    timeout_s: float | None = None
    fresh: bool = False
    invisible: str = ""
    not_for: str = ""
    on: dict[str, Elsewhere] = {}

    def with_backend(self, backend: str) -> Fault:
        """The fault as this backend has it."""
        other = self.on.get(backend)
        there = {(row.level, row.name) for row in table(backend).steps if not row.skip}
        if (self.level, self.step) not in there:
            absent = f"it has no step {self.step} at level {self.level}"
            return msgspec.structs.replace(self, not_for=absent)
        if other is None:
            return self
        return msgspec.structs.replace(
            self,
            what=other.what or self.what,
            boundary=_several(other.boundary) if other.boundary else self.boundary,
            not_for=other.not_for,
        )


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    what: str
    level: int
    step: str
    source: str
    group: str = ""
    seam: str = ""
    inject: str = ""
    boundary: Boundary | tuple[Boundary, ...] | None = None
    words: tuple[str, ...] = ()
    extra: tuple[str, ...] = msgspec.field(name="with", default=())
    env: dict[str, str] = {}
    prepare: str = ""
    stage: str = ""
    timeout_s: float | None = None
    fresh: bool = False
    invisible: str = ""
    on: dict[str, Elsewhere] = {}


class _Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: str
    boundary: Boundary
    seam: str
    faults: tuple[_Entry, ...]


@cache
def catalogue() -> tuple[Fault, ...]:
    """All faults, in the order of the files."""
    found: list[Fault] = []
    for file in sorted(files(__package__).iterdir(), key=lambda one: one.name):
        if file.name.endswith(".yaml"):
            group = msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), _Group)
            found += (_fault(entry, group) for entry in group.faults)
    return tuple(found)


def chosen(only: Iterable[str]) -> tuple[Fault, ...]:
    """The faults of these ids or groups, all for none. Raises UsageError for a name that is neither."""
    wanted, known = list(only), catalogue()
    names = {fault.id for fault in known} | {fault.group for fault in known}
    for name in wanted:
        if name not in names:
            raise UsageError(
                f"no fault or group {name!r}{nearest(name, names)}", remedy="see 'proveout faults list'"
            )
    return tuple(fault for fault in known if not wanted or fault.id in wanted or fault.group in wanted)


def _fault(entry: _Entry, group: _Group) -> Fault:
    boundary = entry.boundary or group.boundary
    return Fault(
        id=entry.id,
        group=entry.group or group.group,
        what=entry.what,
        seam=entry.seam or group.seam,
        level=entry.level,
        step=entry.step,
        boundary=_several(boundary),
        source=entry.source,
        words=entry.words or (() if entry.env else (f"fault.inject={entry.inject or entry.id}",)),
        extra=entry.extra,
        env=entry.env,
        prepare=entry.prepare,
        stage=entry.stage,
        timeout_s=entry.timeout_s,
        fresh=entry.fresh,
        invisible=entry.invisible,
        on=entry.on,
    )


def _several(boundary: Boundary | tuple[Boundary, ...]) -> tuple[Boundary, ...]:
    return boundary if isinstance(boundary, tuple) else (boundary,)
