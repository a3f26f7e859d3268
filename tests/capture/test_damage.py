"""Damaged event files: no crash, a finding with file and offset, everything sound kept, nothing made up."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proveout.capture.events import batch, file, frames
from proveout.capture.reading import Reading
from proveout.capture.registry import READERS

shared = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=["records", "arrays"], autouse=True)
def path_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "arrays":
        monkeypatch.setattr(file, "_BATCH_RECORDS", 1)
        monkeypatch.setattr(file, "_PREDICT_FROM", 0)
        monkeypatch.setattr(file, "CHUNK", 5000)
        monkeypatch.setattr(frames, "_LEARN", 4)
        monkeypatch.setattr(batch, "_MIN_ROWS", 1)


def read(path: Path, data: bytes) -> Reading:
    path.write_bytes(data)
    (reading,) = READERS["tensorboard"].read(path)
    return reading


def rows(reading: Reading) -> set[tuple[str, int, float]]:
    return {
        (tag, step, value)
        for tag, p in reading.points.items()
        for step, value in zip(p.steps, p.values, strict=True)
    }


def bounds(data: bytes) -> list[tuple[int, int]]:
    """First byte and end of each record of a sound file."""
    found, pos = [], 0
    while pos < len(data):
        size = 16 + int.from_bytes(data[pos : pos + 8], "little")
        found.append((pos, pos + size))
        pos += size
    return found


@shared
@given(data=st.data())
def test_one_damaged_byte_costs_one_record(data: st.DataObject, tmp_path: Path, real_events: Path) -> None:
    sound = real_events.read_bytes()
    whole = rows(read(tmp_path / "sound", sound))
    at = data.draw(st.integers(0, len(sound) - 1))
    flip = data.draw(st.integers(1, 255))
    reading = read(tmp_path / "events", sound[:at] + bytes([sound[at] ^ flip]) + sound[at + 1 :])
    begin = next(first for first, end in bounds(sound) if first <= at < end)
    assert len(whole) - 1 <= len(rows(reading)) <= len(whole)
    assert rows(reading) <= whole
    (finding,) = reading.all_findings()
    assert finding.id == "capture.events.corrupt"
    assert (finding.where.file, finding.where.offset) == (str(tmp_path / "events"), begin)


@shared
@given(at=st.integers(0, 13268), noise=st.binary(min_size=1, max_size=200))
def test_inserted_bytes_are_skipped(at: int, noise: bytes, tmp_path: Path, real_events: Path) -> None:
    sound = real_events.read_bytes()
    whole = rows(read(tmp_path / "sound", sound))
    reading = read(tmp_path / "events", sound[:at] + noise + sound[at:])
    assert rows(reading) <= whole
    assert len(rows(reading)) >= len(whole) - 1
    assert all(finding.where.offset is not None for finding in reading.all_findings())
    assert reading.all_findings()


@shared
@given(cut=st.integers(0, 13268))
def test_a_cut_last_record_is_tolerated_and_said(cut: int, tmp_path: Path, real_events: Path) -> None:
    sound = real_events.read_bytes()
    reading = read(tmp_path / "events", sound[:cut])
    begins = [0, *(end for _, end in bounds(sound))]
    if cut in begins:
        assert reading.all_findings() == []
    else:
        (finding,) = reading.all_findings()
        assert (finding.id, finding.severity) == ("capture.events.truncated", "notice")
        assert finding.where.offset == max(begin for begin in begins if begin <= cut)
    before = sum(end <= cut for _, end in bounds(sound))
    assert sum(map(len, reading.points.values())) == max(0, before - 1)


@shared
@given(seed=st.integers(0, 1 << 30), cuts=st.integers(1, 12))
def test_heavily_mangled_files(seed: int, cuts: int, tmp_path: Path, real_events: Path) -> None:
    numbers = random.Random(seed)
    sound = real_events.read_bytes()
    whole = rows(read(tmp_path / "sound", sound))
    data = bytearray(sound)
    for _ in range(cuts):
        at, size = numbers.randrange(len(data)), numbers.randrange(1, 300)
        kind = numbers.randrange(4)
        if kind == 0:
            data[at : at + size] = bytes(size)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = data[at : at + size]
        else:
            data[at : at + size] = numbers.randbytes(size)
    assert rows(read(tmp_path / "events", bytes(data))) <= whole


@shared
@given(data=st.binary(max_size=400))
def test_arbitrary_bytes(data: bytes, tmp_path: Path) -> None:
    reading = read(tmp_path / "events", data)
    assert reading.points == {}
    assert bool(data) == bool(reading.all_findings())


@pytest.mark.parametrize("tail", [bytes(300_000), b"\x01" * 300_000, b"\x18" + bytes(7) + b"\xff" * 100_000])
def test_a_damaged_end_is_left_out_and_said(tail: bytes, tmp_path: Path, real_events: Path) -> None:
    sound = real_events.read_bytes()
    whole = rows(read(tmp_path / "sound", sound))
    reading = read(tmp_path / "events", sound + tail)
    assert rows(reading) == whole
    (finding,) = reading.all_findings()
    assert finding.where.offset == len(sound)
    assert str(len(tail)) in finding.what


def test_the_number_of_findings_is_bounded(tmp_path: Path, maker) -> None:
    record = bytearray(maker.scalar("a", 1, 1.0))
    record[-1] ^= 1
    reading = read(tmp_path / "events", bytes(record) * 500 + maker.scalar("a", 2, 2.0))
    assert rows(reading) == {("a", 2, 2.0)}
    assert len(reading.all_findings()) == 21
    assert "480 more" in reading.all_findings()[-1].what


def test_records_with_a_right_checksum_that_are_no_events(tmp_path: Path, maker) -> None:
    data = (
        maker.frame(b"\x2a\xff")
        + maker.frame(b"\x0f")
        + maker.frame(b"\x80" * 12)
        + maker.scalar("a", 2, 2.0)
    )
    reading = read(tmp_path / "events", data)
    assert rows(reading) == {("a", 2, 2.0)}
    assert [finding.where.offset for finding in reading.all_findings()] == [0, 18, 35]
