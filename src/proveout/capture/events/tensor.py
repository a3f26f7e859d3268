"""The one number that a scalar ``TensorProto`` holds.

Type numbers: tensorflow/core/framework/types.proto; typed value fields: tensor.proto.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

DT_FLOAT, DT_DOUBLE, DT_BFLOAT16, DT_HALF = 1, 2, 14, 19


class Tensor(NamedTuple):
    """A tensor as written: type number, number of elements, raw content, ``(field, wire type, bytes)``."""

    dtype: int
    elements: int
    content: bytes
    values: list[tuple[int, int, bytes]]


_CONTENT = {
    1: "<f",
    2: "<d",
    3: "<i",
    4: "<B",
    5: "<h",
    6: "<b",
    9: "<q",
    10: "<?",
    17: "<H",
    22: "<I",
    23: "<Q",
}
_VALUE_FIELD = {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 14: 13, 17: 7, 19: 13, 22: 16, 23: 17}
_UNSIGNED = {10, 14, 17, 19, 22, 23}


def scalar_of(tensor: Tensor) -> float | None:
    """The tensor's value, or None where it has no single real number (a vector, a string, a complex)."""
    if tensor.elements != 1 or tensor.dtype not in _VALUE_FIELD:
        return None
    if tensor.content:
        return _from_content(tensor.dtype, tensor.content)
    field = _VALUE_FIELD[tensor.dtype]
    raw = [(wire, data) for number, wire, data in tensor.values if number == field and data]
    if not raw:
        return 0.0
    if len(raw) > 1:
        return None
    return _from_field(tensor.dtype, *raw[0])


def _from_content(dtype: int, content: bytes) -> float | None:
    if dtype in (DT_BFLOAT16, DT_HALF):
        return _sixteen(dtype, int.from_bytes(content, "little")) if len(content) == 2 else None
    form = _CONTENT[dtype]
    return float(struct.unpack(form, content)[0]) if len(content) == struct.calcsize(form) else None


def _from_field(dtype: int, wire: int, data: bytes) -> float | None:
    if dtype in (DT_FLOAT, DT_DOUBLE):
        form = _CONTENT[dtype]
        return float(struct.unpack(form, data)[0]) if len(data) == struct.calcsize(form) else None
    if wire not in (0, 2):
        return None
    number = 0
    for shift, byte in enumerate(data):
        if (byte < 0x80) != (shift == len(data) - 1):
            return None
        number |= (byte & 0x7F) << (7 * shift)
    number &= 0xFFFFFFFFFFFFFFFF
    if dtype in (DT_BFLOAT16, DT_HALF):
        return _sixteen(dtype, number & 0xFFFF)
    if dtype not in _UNSIGNED and number >= 1 << 63:
        number -= 1 << 64
    return float(number)


def _sixteen(dtype: int, bits: int) -> float:
    if dtype == DT_HALF:
        return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
    return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
