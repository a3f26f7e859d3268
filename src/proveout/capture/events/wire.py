"""The few protobuf messages of an event file that hold scalars, read without protobuf.

Field numbers: tensorflow/core/util/event.proto, tensorflow/core/framework/{summary,tensor,types}.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from proveout.capture.events.tensor import Tensor, scalar_of

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SCALARS_PLUGIN = b"scalars"
SESSION_START = 1
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


class WireError(ValueError):
    """The bytes are not a well-formed message."""


class Record(NamedTuple):
    """One event: epoch seconds, step, scalars, tags without a scalar, and whether it marks a restart."""

    wall: float
    step: int
    scalars: list[tuple[str, float]]
    others: list[str]
    restart: bool


def varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """The unsigned varint at ``pos`` and the position after it."""
    result = shift = 0
    while pos < end and shift < 70:
        byte = data[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, pos
        shift += 7
    raise WireError("a varint does not end")


def signed(value: int) -> int:
    """An unsigned 64-bit number read as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: bytes, pos: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """``(field number, wire type, first byte, end)`` of each field in ``data[pos:end]``.

    Raises WireError where a field is cut off or of an unknown wire type.
    """
    while pos < end:
        key = data[pos]
        if key < 0x80:
            pos += 1
        else:
            key, pos = varint(data, pos, end)
        wire = key & 7
        if wire == BYTES:
            size, start = varint(data, pos, end)
            stop = start + size
        elif wire == VARINT:
            start = pos
            stop = varint(data, pos, end)[1]
        elif wire == FIXED32:
            start, stop = pos, pos + 4
        elif wire == FIXED64:
            start, stop = pos, pos + 8
        else:
            raise WireError(f"wire type {wire}")
        if stop > end:
            raise WireError("a field runs past its message")
        yield key >> 3, wire, start, stop
        pos = stop


class SummaryValue(NamedTuple):
    """One value of a summary, located: tag bytes, simple value, tensor span, plugin name."""

    tag: bytes
    simple: float | None
    tensor: tuple[int, int] | None
    plugin: bytes | None


def summary_value(data: bytes, pos: int, end: int) -> SummaryValue:
    """Read one ``Summary.Value``."""
    tag = node = b""
    simple: float | None = None
    tensor: tuple[int, int] | None = None
    plugin: bytes | None = None
    for number, wire, start, stop in fields(data, pos, end):
        if number == 1 and wire == BYTES:
            tag = data[start:stop]
        elif number == 7 and wire == BYTES:
            node = data[start:stop]
        elif number == 2 and wire == FIXED32:
            simple, tensor = _FLOAT.unpack_from(data, start)[0], None
        elif number == 8 and wire == BYTES:
            simple, tensor = None, (start, stop)
        elif number in (3, 4, 5, 6) and wire == BYTES:
            simple, tensor = None, None
        elif number == 9 and wire == BYTES:
            plugin = plugin_name(data, start, stop)
    return SummaryValue(tag or (node if tensor else b""), simple, tensor, plugin)


def plugin_name(data: bytes, pos: int, end: int) -> bytes:
    """The plugin that a ``SummaryMetadata`` names, or an empty string."""
    for number, wire, start, stop in fields(data, pos, end):
        if number == 1 and wire == BYTES:
            for inner, kind, first, last in fields(data, start, stop):
                if inner == 1 and kind == BYTES:
                    return data[first:last]
    return b""


def tensor(data: bytes, pos: int, end: int) -> Tensor:
    """Read a ``TensorProto``: type, number of elements, raw content and typed values."""
    dtype = 0
    elements = 1
    content = b""
    values: list[tuple[int, int, bytes]] = []
    for number, wire, start, stop in fields(data, pos, end):
        if number == 1 and wire == VARINT:
            dtype = varint(data, start, stop)[0]
        elif number == 2 and wire == BYTES:
            elements = _elements(data, start, stop)
        elif number == 4 and wire == BYTES:
            content = data[start:stop]
        elif number >= 5:
            values.append((number, wire, data[start:stop]))
    return Tensor(dtype, elements, content, values)


def _elements(data: bytes, pos: int, end: int) -> int:
    total = 1
    for number, wire, start, stop in fields(data, pos, end):
        if number == 3 and wire == VARINT:
            return -1
        if number == 2 and wire == BYTES:
            size = 0
            for inner, kind, first, last in fields(data, start, stop):
                if inner == 1 and kind == VARINT:
                    size = signed(varint(data, first, last)[0])
            total *= size
            if not 0 <= total <= 1:
                return -1
    return total


def record(data: bytes, pos: int, end: int, plugins: dict[bytes, bytes]) -> Record:
    """Read one event. ``plugins`` remembers each tag's plugin: writers may name it in the first record only.

    Raises WireError for bytes that are no event.
    """
    wall, step, restart = 0.0, 0, False
    scalars: list[tuple[str, float]] = []
    others: list[str] = []
    for number, wire, start, stop in fields(data, pos, end):
        if number == 1 and wire == FIXED64:
            wall = _DOUBLE.unpack_from(data, start)[0]
        elif number == 2 and wire == VARINT:
            step = signed(varint(data, start, stop)[0])
        elif number == 5 and wire == BYTES:
            for inner, kind, first, last in fields(data, start, stop):
                if inner == 1 and kind == BYTES:
                    _take(data, summary_value(data, first, last), plugins, scalars, others)
        elif number == 7 and wire == BYTES:
            restart = any(
                inner == 1 and kind == VARINT and varint(data, first, last)[0] == SESSION_START
                for inner, kind, first, last in fields(data, start, stop)
            )
    return Record(wall, step, scalars, others, restart)


def _take(
    data: bytes,
    value: SummaryValue,
    plugins: dict[bytes, bytes],
    scalars: list[tuple[str, float]],
    others: list[str],
) -> None:
    name = value.tag.decode("utf-8", "replace")
    if value.simple is not None:
        scalars.append((name, value.simple))
        return
    if value.plugin:
        plugins.setdefault(value.tag, value.plugin)
    if value.tensor is not None and plugins.get(value.tag) == SCALARS_PLUGIN:
        number = scalar_of(tensor(data, *value.tensor))
        if number is not None:
            scalars.append((name, number))
            return
    if name:
        others.append(name)
