"""Many records at once: those of one length and one layout are read as arrays.

Records of one length are laid side by side as rows of bytes. The first row is parsed and gives the layout
(where time, step, value and tag stand); all rows with the same structure around the tag are read by that
layout. Taking the variable bytes out of each stored checksum leaves a number that depends on the fixed bytes
alone: rows with the same number hold the same tag. One row of each such group is verified with CRC-32C, the
others by being equal to it outside the variable bytes. What does not fit is left to the record parser.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from proveout.capture.events import wire
from proveout.capture.events.crc import ByteTables, masked, unmask
from proveout.capture.events.tensor import DT_DOUBLE, DT_FLOAT

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIN_ROWS = 8
_MAX_LENGTH = 1024
_MAX_LAYOUTS = 24
_STORED = struct.Struct("<I")


class Layout(NamedTuple):
    """Byte positions in a record's payload; ``step`` is empty where step 0 was left out."""

    wall: int
    step: range
    value: int
    double: bool
    tensor: bool
    tag: range

    @property
    def width(self) -> int:
        """Bytes of the value."""
        return 8 if self.double else 4

    def varying(self) -> list[int]:
        """The columns of time, step and value."""
        return [
            *range(self.wall, self.wall + 8),
            *self.step,
            *range(self.value, self.value + self.width),
        ]


class Rows(NamedTuple):
    """Records of one payload length: their numbers and first bytes [n], their bytes with checksum [n, size + 4]."""

    members: NDArray[Any]
    starts: NDArray[Any]
    data: NDArray[Any]
    size: int

    def pick(self, which: NDArray[Any] | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.members[which], self.starts[which], self.data[which], self.size)


class Piece(NamedTuple):
    """Points of one tag within a buffer, with the record numbers they came from."""

    tag: str
    order: NDArray[Any]
    steps: NDArray[Any]
    values: NDArray[Any]
    wall: NDArray[Any]


def layout_of(data: bytes, pos: int, end: int) -> Layout | None:
    """The layout of a record that holds exactly one scalar, relative to ``pos``; None for any other."""
    try:
        top = {(number, kind): (start, stop) for number, kind, start, stop in wire.fields(data, pos, end)}
        count = sum(1 for _ in wire.fields(data, pos, end))
        summary = top.get((5, wire.BYTES))
        wall = top.get((1, wire.FIXED64))
        step = top.get((2, wire.VARINT), (pos, pos))
        if summary is None or wall is None or len(top) != count or set(top) - _PLAIN:
            return None
        values = list(wire.fields(data, *summary))
        if len(values) != 1 or values[0][:2] != (1, wire.BYTES):
            return None
        inner = list(wire.fields(data, *values[0][2:]))
        found = {(number, kind): (start, stop) for number, kind, start, stop in inner}
        if len(found) != len(inner) or (1, wire.BYTES) not in found or step[1] - step[0] > 8:
            return None
        value = _value(data, found)
    except wire.WireError:
        return None
    if value is None:
        return None
    tag = found[1, wire.BYTES]
    return Layout(
        wall[0] - pos,
        range(step[0] - pos, step[1] - pos),
        value[0] - pos,
        value[1],
        (8, wire.BYTES) in found,
        range(tag[0] - pos, tag[1] - pos),
    )


_PLAIN = {(1, wire.FIXED64), (2, wire.VARINT), (5, wire.BYTES)}


def _value(data: bytes, found: dict[tuple[int, int], tuple[int, int]]) -> tuple[int, bool] | None:
    """Where the value stands and whether it is a double."""
    rest = set(found) - {(1, wire.BYTES), (7, wire.BYTES), (9, wire.BYTES)}
    if rest == {(2, wire.FIXED32)}:
        return found[2, wire.FIXED32][0], False
    metadata = found.get((9, wire.BYTES))
    if rest != {(8, wire.BYTES)} or metadata is None:
        return None
    if wire.plugin_name(data, *metadata) != wire.SCALARS_PLUGIN:
        return None
    parts = list(wire.fields(data, *found[8, wire.BYTES]))
    tensor = wire.tensor(data, *found[8, wire.BYTES])
    if tensor.elements != 1 or tensor.dtype not in (DT_FLOAT, DT_DOUBLE):
        return None
    double = tensor.dtype == DT_DOUBLE
    spans = [(number, start, stop) for number, _, start, stop in parts if number >= 4]
    wanted = (4, 6 if double else 5)
    if len(spans) != 1 or spans[0][0] not in wanted or spans[0][2] - spans[0][1] != (8 if double else 4):
        return None
    return spans[0][1], double


class BatchReader:
    """Reads the records of a buffer by layout; keeps its checksum tables between buffers."""

    def __init__(self, plugins: dict[bytes, bytes]) -> None:
        self._tables = ByteTables()
        self._plugins = plugins

    def read(
        self, data: bytes, starts: NDArray[Any], lengths: NDArray[Any]
    ) -> tuple[list[Piece], NDArray[Any]]:
        """Points by tag, and the numbers of the records (ascending) that the record parser must read."""
        pieces: list[Piece] = []
        left: list[NDArray[Any]] = []
        by_length = np.argsort(lengths, kind="stable")
        sizes, firsts = np.unique(lengths[by_length], return_index=True)
        for size, members in zip(sizes.tolist(), np.split(by_length, firsts[1:]), strict=True):
            if len(members) < _MIN_ROWS or size > _MAX_LENGTH:
                left.append(members)
            else:
                windows = np.ndarray((len(data) - size - 3, size + 4), np.uint8, data, strides=(1, 1))
                first = starts[members]
                left.append(self._one_length(data, Rows(members, first, windows[first], size), pieces))
        rest = np.concatenate(left) if left else np.empty(0, np.int64)
        return pieces, np.sort(rest)

    def _one_length(self, data: bytes, rows: Rows, pieces: list[Piece]) -> NDArray[Any]:
        skipped: list[NDArray[Any]] = []
        for _ in range(_MAX_LAYOUTS):
            if len(rows.members) < _MIN_ROWS:
                break
            first = int(rows.starts[0])
            layout = layout_of(data, first, first + rows.size)
            if layout is None:
                skipped.append(rows.members[:1])
                rows = rows.pick(slice(1, None))
                continue
            alike = self._same_structure(rows, layout)
            every = bool(alike.all())
            skipped.append(self._one_layout(data, rows if every else rows.pick(alike), layout, pieces))
            rows = rows.pick(slice(0) if every else ~alike)
        return np.concatenate([*skipped, rows.members])

    @staticmethod
    def _same_structure(rows: Rows, layout: Layout) -> NDArray[Any]:
        variable = {*layout.varying(), *layout.tag}
        fixed = [column for column in range(rows.size) if column not in variable]
        alike: NDArray[Any] = (rows.data[:, fixed] == rows.data[0, fixed]).all(axis=1)
        for column in layout.step:
            alike &= (rows.data[:, column] & 0x80) == (rows.data[0, column] & 0x80)
        return alike

    def _one_layout(self, data: bytes, rows: Rows, layout: Layout, pieces: list[Piece]) -> NDArray[Any]:
        key = unmask(np.ascontiguousarray(rows.data[:, rows.size :]).view("<u4")[:, 0])
        for column in layout.varying():
            key ^= self._tables.table(rows.size - 1 - column)[rows.data[:, column]]
        _, lead, group = np.unique(key, return_index=True, return_inverse=True)
        tags = rows.data[:, layout.tag.start : layout.tag.stop]
        sound = (tags == tags[lead][group]).all(axis=1)
        sound &= np.array([self._intact(data, int(rows.starts[i]), rows.size) for i in lead])[group]
        wanted = np.flatnonzero(sound)
        wanted = wanted[np.argsort(group[wanted], kind="stable")]
        steps, values, wall = (column[wanted] for column in _numbers(rows.data, layout))
        order = rows.members[wanted]
        ends = np.cumsum(np.bincount(group[wanted], minlength=len(lead))).tolist()
        for index, begin, end in zip(lead.tolist(), [0, *ends], ends, strict=False):
            if begin == end:
                continue
            tag = tags[index].tobytes()
            if layout.tensor:
                self._plugins.setdefault(tag, wire.SCALARS_PLUGIN)
            name = tag.decode("utf-8", "replace")
            part = slice(begin, end)
            pieces.append(Piece(name, order[part], steps[part], values[part], wall[part]))
        left: NDArray[Any] = rows.members[~sound]
        return left

    @staticmethod
    def _intact(data: bytes, start: int, size: int) -> bool:
        stored: int = _STORED.unpack_from(data, start + size)[0]
        return masked(data[start : start + size]) == stored


def _numbers(data: NDArray[Any], layout: Layout) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Steps int64, values float64 and times float64 of rows of one layout."""
    steps = np.zeros(len(data), np.int64)
    for place, column in enumerate(layout.step):
        steps |= (data[:, column] & 0x7F).astype(np.int64) << (7 * place)
    raw = np.ascontiguousarray(data[:, layout.value : layout.value + layout.width])
    with np.errstate(invalid="ignore"):
        values = raw.view("<f8" if layout.double else "<f4")[:, 0].astype(np.float64)
    wall = np.ascontiguousarray(data[:, layout.wall : layout.wall + 8]).view("<f8")[:, 0]
    return steps, values, wall
