"""Reads an event file from where it was left, in bounded memory, and keeps what is sound."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from proveout.capture.events import frames, wire
from proveout.capture.events.crc import LengthCheck, masked
from proveout.capture.events.predict import HEADER_SIZE, Predictor
from proveout.capture.reading import Points, Reading
from proveout.domain.finding import Severity

if TYPE_CHECKING:
    from proveout.capture.events.batch import BatchReader

CHUNK = 1 << 20
_PREDICT_FROM = 256 << 10
_BATCH_RECORDS = 2000
_STORED = struct.Struct("<I")


class EventReader:
    """One event file. ``offset`` is the byte at which the next unread record begins.

    Every record's length and payload are verified. A damaged payload costs its record; a damaged length costs
    the bytes up to the next length that carries its own checksum. Both are findings with their byte offset.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self.reading = path, reading
        self.offset = 0
        self.left_over = 0
        self.lost = False
        self._lengths_ok = LengthCheck()
        self._plugins: dict[bytes, bytes] = {}
        self._predictor = Predictor()
        self._batch: BatchReader | None = None

    def read_new(self, limit: int | None = None) -> None:
        """Read what was appended since the last call into ``reading``, all of it or about ``limit`` bytes.

        Afterwards ``left_over`` is the number of bytes that were not read; without a limit they make no whole
        record, and ``lost`` says that they begin with a damaged length. Raises OSError.
        """
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(self.offset)
            self._read(file, size, self.offset + limit if limit else None)
            self.left_over = max(0, max(size, file.tell()) - self.offset)

    def note_end(self) -> None:
        """Make a finding of the bytes at the end that are no whole record."""
        if self.lost:
            self.reading.note(
                "events.corrupt",
                f"a record's length is damaged and none follows; left out the last {self.left_over} bytes",
                offset=self.offset,
            )
        elif self.left_over:
            self.reading.note(
                "events.truncated",
                f"the last record is not complete ({self.left_over} bytes): the run still writes or was killed",
                severity=Severity.NOTICE,
                offset=self.offset,
            )

    def _read(self, file: BinaryIO, size: int, stop: int | None) -> None:
        data, wanted = b"", CHUNK
        self.lost = False
        while (stop is None or self.offset < stop) and (more := file.read(wanted)):
            data = data + more if data else more
            used, scan = self._consume(data)
            self.offset += used
            data, wanted = data[used:], max(CHUNK, scan.needed - len(data) + used)
            if scan.why is frames.Stop.DAMAGED:
                found = self._search(file)
                if found is None:
                    self.lost = True
                    return
                self._damaged(self.offset, found - self.offset)
                self.offset, data, wanted = file.seek(found), b"", CHUNK
            elif scan.why is frames.Stop.HUGE:
                if self.offset + scan.needed > size:
                    return
                self.reading.note(
                    "events.too-large",
                    f"left out a record of {scan.needed} bytes: no scalar is that large",
                    severity=Severity.NOTICE,
                    offset=self.offset,
                )
                self.offset, data, wanted = file.seek(self.offset + scan.needed), b"", CHUNK

    def _consume(self, data: bytes) -> tuple[int, frames.Scan]:
        """Read the whole records of ``data``, over damage where it ends in ``data``; the bytes used."""
        pos = 0
        while True:
            large = len(data) - pos >= _PREDICT_FROM
            scan = frames.scan(data, pos, self._lengths_ok, self._predictor if large else None)
            self._take(data, scan)
            pos = scan.stopped
            if scan.why is not frames.Stop.DAMAGED:
                return pos, scan
            found = frames.resync(data, pos + 1, self._lengths_ok)
            if found is None:
                return pos, scan
            self._damaged(self.offset + pos, found - pos)
            pos = found

    def _search(self, file: BinaryIO) -> int | None:
        """The next sound length after ``offset`` in the file, or None."""
        at = file.seek(self.offset + 1)
        data = b""
        while more := file.read(CHUNK):
            data += more
            found = frames.resync(data, 0, self._lengths_ok)
            if found is not None:
                return at + found
            keep = min(len(data), HEADER_SIZE - 1)
            at += len(data) - keep
            data = data[len(data) - keep :]
        return None

    def _damaged(self, offset: int, skipped: int) -> None:
        self.reading.note(
            "events.corrupt",
            f"a record's length is damaged; left out {skipped} bytes up to the next sound record",
            offset=offset,
        )

    def _take(self, data: bytes, scan: frames.Scan) -> None:
        if len(scan.starts) >= _BATCH_RECORDS:
            self._take_batch(data, scan)
            return
        for start, length in zip(scan.starts, scan.lengths, strict=True):
            record = self._record(data, start, length)
            if record is not None:
                self._keep(record)

    def _record(self, data: bytes, start: int, length: int) -> wire.Record | None:
        payload = data[start : start + length]
        if masked(payload) != _STORED.unpack_from(data, start + length)[0]:
            why = "a record does not match its checksum and was left out"
        else:
            try:
                return wire.record(payload, 0, length, self._plugins)
            except wire.WireError as error:
                why = f"a record is no event ({error}) and was left out"
        self.reading.note("events.corrupt", why, offset=self.offset + start - HEADER_SIZE)
        return None

    def _keep(self, record: wire.Record) -> None:
        if record.restart:
            self._restart(record.step)
        if math.isfinite(record.wall):
            self.reading.seen(record.wall, record.wall)
        for tag, value in record.scalars:
            self.reading.add(tag, record.step, value, record.wall)
        self.reading.other_tags.update(record.others)

    def _restart(self, step: int) -> None:
        """A writer that resumes declares what it wrote at or after ``step`` void."""
        dropped = sum(points.drop_from(step) for points in self.reading.points.values())
        if dropped:
            self.reading.note(
                "events.restart",
                f"the writer restarted at step {step}: {dropped} earlier values at or after it are left out",
                severity=Severity.NOTICE,
                step=step,
            )

    def _take_batch(self, data: bytes, scan: frames.Scan) -> None:
        import numpy as np

        from proveout.capture.events.batch import BatchReader
        from proveout.capture.events.merge import ordered

        if self._batch is None:
            self._batch = BatchReader(self._plugins)
        starts = np.frombuffer(scan.starts, np.int64)
        lengths = np.frombuffer(scan.lengths, np.int64)
        pieces, rest = self._batch.read(data, starts, lengths)
        single: list[tuple[int, wire.Record]] = []
        for number in rest.tolist():
            record = self._record(data, scan.starts[number], scan.lengths[number])
            if record is not None:
                single.append((number, record))
        for _, record in single:
            self.reading.other_tags.update(record.others)
            if record.restart:
                self._restart(record.step)
        walls = []
        for tag, piece in ordered(pieces, single):
            points = self.reading.points.setdefault(tag, Points())
            points.extend(piece.steps.tobytes(), piece.values.tobytes(), piece.wall.tobytes())
            walls.append(piece.wall)
        wall = np.concatenate(walls) if walls else np.empty(0)
        wall = wall[np.isfinite(wall)]
        if len(wall):
            self.reading.seen(float(wall.min()), float(wall.max()))
