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
                left.append(self._one_length(data, starts, size, members, pieces))
        rest = np.concatenate(left) if left else np.empty(0, np.int64)
        return pieces, np.sort(rest)

    def _one_length(
        self, data: bytes, starts: NDArray[Any], size: int, members: NDArray[Any], pieces: list[Piece]
    ) -> NDArray[Any]:
        windows = np.ndarray((len(data) - size - 3, size + 4), np.uint8, data, strides=(1, 1))
        rows = windows[starts[members]]
        skipped: list[NDArray[Any]] = []
        for _ in range(_MAX_LAYOUTS):
            if len(members) < _MIN_ROWS:
                break
            first = int(starts[members[0]])
            layout = layout_of(data, first, first + size)
            if layout is None:
                skipped.append(members[:1])
                members, rows = members[1:], rows[1:]
                continue
            alike = self._same_structure(rows, layout, size)
            every = bool(alike.all())
            taken, chosen = (members, rows) if every else (members[alike], rows[alike])
            skipped.append(self._one_layout(data, starts, size, taken, chosen, layout, pieces))
            if every:
                members = members[:0]
                break
            members, rows = members[~alike], rows[~alike]
        return np.concatenate([*skipped, members])

    @staticmethod
    def _same_structure(rows: NDArray[Any], layout: Layout, size: int) -> NDArray[Any]:
        variable = {*range(layout.wall, layout.wall + 8), *layout.step, *layout.tag}
        variable.update(range(layout.value, layout.value + (8 if layout.double else 4)))
        fixed = [column for column in range(size) if column not in variable]
        alike: NDArray[Any] = (rows[:, fixed] == rows[0, fixed]).all(axis=1)
        for column in layout.step:
            alike &= (rows[:, column] & 0x80) == (rows[0, column] & 0x80)
        return alike

    def _one_layout(
        self,
        data: bytes,
        starts: NDArray[Any],
        size: int,
        members: NDArray[Any],
        rows: NDArray[Any],
        layout: Layout,
        pieces: list[Piece],
    ) -> NDArray[Any]:
        width = 8 if layout.double else 4
        key = unmask(np.ascontiguousarray(rows[:, size:]).view("<u4")[:, 0])
        for column in (
            *range(layout.wall, layout.wall + 8),
            *layout.step,
            *range(layout.value, layout.value + width),
        ):
            key ^= self._tables.table(size - 1 - column)[rows[:, column]]
        _, lead, group = np.unique(key, return_index=True, return_inverse=True)
        tags = rows[:, layout.tag.start : layout.tag.stop]
        sound = (tags == tags[lead][group]).all(axis=1)
        whole = [starts[members[i]] for i in lead]
        sound &= np.array([self._intact(data, int(start), size) for start in whole])[group]

        steps = np.zeros(len(rows), np.int64)
        for place, column in enumerate(layout.step):
            steps |= (rows[:, column] & 0x7F).astype(np.int64) << (7 * place)
        values = np.ascontiguousarray(rows[:, layout.value : layout.value + width])
        with np.errstate(invalid="ignore"):
            numbers = values.view("<f8" if layout.double else "<f4")[:, 0].astype(np.float64)
        wall = np.ascontiguousarray(rows[:, layout.wall : layout.wall + 8]).view("<f8")[:, 0]

        by_group = np.argsort(group, kind="stable")
        cuts = np.cumsum(np.bincount(group, minlength=len(lead)))[:-1]
        for index, picked in zip(lead, np.split(by_group, cuts), strict=True):
            use = picked[sound[picked]]
            if len(use):
                tag = tags[index].tobytes()
                if layout.tensor:
                    self._plugins.setdefault(tag, wire.SCALARS_PLUGIN)
                pieces.append(
                    Piece(tag.decode("utf-8", "replace"), members[use], steps[use], numbers[use], wall[use])
                )
        return members[~sound]

    @staticmethod
    def _intact(data: bytes, start: int, size: int) -> bool:
        stored: int = _STORED.unpack_from(data, start + size)[0]
        return masked(data[start : start + size]) == stored
