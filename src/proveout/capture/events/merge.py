"""Puts the points that were read as arrays and those that were read one by one back into file order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from proveout.capture.events.batch import Piece
from proveout.capture.events.wire import Record


def ordered(pieces: Sequence[Piece], single: Sequence[tuple[int, Record]]) -> Iterator[tuple[str, Piece]]:
    """One piece per tag, in file order, without what a restart within the buffer declares void."""
    by_tag: dict[str, list[Piece]] = {}
    for piece in [*pieces, *_loose(single)]:
        by_tag.setdefault(piece.tag, []).append(piece)
    restarts = [(number, record.step) for number, record in single if record.restart]
    for tag, parts in by_tag.items():
        piece = parts[0] if len(parts) == 1 else _join(tag, parts)
        for number, step in restarts:
            piece = _pick(piece, (piece.order > number) | (piece.steps < step))
        yield tag, piece


def _loose(single: Sequence[tuple[int, Record]]) -> Iterator[Piece]:
    points: dict[str, list[tuple[int, int, float, float]]] = {}
    for number, record in single:
        for tag, value in record.scalars:
            points.setdefault(tag, []).append((number, record.step, value, record.wall))
    for tag, rows in points.items():
        order, steps, values, wall = zip(*rows, strict=True)
        yield Piece(
            tag,
            np.array(order, np.int64),
            np.array(steps, np.int64),
            np.array(values, np.float64),
            np.array(wall, np.float64),
        )


def _join(tag: str, parts: Sequence[Piece]) -> Piece:
    order = np.concatenate([part.order for part in parts])
    whole = Piece(
        tag,
        order,
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.wall for part in parts]),
    )
    return _pick(whole, np.argsort(order, kind="stable"))


def _pick(piece: Piece, which: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Piece:
    return Piece(piece.tag, piece.order[which], piece.steps[which], piece.values[which], piece.wall[which])
