"""A live file, followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proveout.capture.events.tail import TailUpdate, TensorBoardTail
from proveout.capture.registry import READERS


def rows(*updates: TailUpdate) -> list[tuple[str, int, float]]:
    return [
        (tag, step, value)
        for update in updates
        for tag, found in update.points.items()
        for step, value in zip(found.steps, found.values, strict=True)
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 13268), max_size=8))
def test_any_growth_gives_every_point_once(cuts: list[int], tmp_path: Path, real_events: Path) -> None:
    sound = real_events.read_bytes()
    path = tmp_path / "live"
    path.unlink(missing_ok=True)
    tail = TensorBoardTail(path)
    updates = [tail.read_new()]
    for end in [*sorted(cuts), len(sound)]:
        path.write_bytes(sound[:end])
        updates.append(tail.read_new())
    (whole,) = READERS["tensorboard"].read(real_events)
    expected = rows(TailUpdate(whole.points, []))
    assert sorted(rows(*updates)) == sorted(expected)
    assert not any(update.findings or update.restarted for update in updates)


def test_only_what_is_new_is_read(tmp_path: Path, maker, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "live"
    path.write_bytes(maker.header() + b"".join(maker.scalar("a", step, 1.0) for step in range(20_000)))
    tail = TensorBoardTail(path)
    tail.read_new()
    size = path.stat().st_size
    assert tail.offset == size
    with path.open("ab") as file:
        file.write(maker.scalar("a", 20_000, 2.0))
    taken: list[int] = []
    opened = Path.open

    def counting(self: Path, *args: object) -> object:
        file = opened(self, *args)
        read = file.read

        class Counted:
            def __getattr__(self, name: str) -> object:
                return getattr(file, name)

            def __enter__(self) -> object:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def read(self, wanted: int) -> bytes:
                data = read(wanted)
                taken.append(len(data))
                return data

        return Counted()

    monkeypatch.setattr(Path, "open", counting)
    assert rows(tail.read_new()) == [("a", 20_000, 2.0)]
    assert sum(taken) == path.stat().st_size - size
    assert rows(tail.read_new()) == []


def test_a_large_file_is_taken_in_pieces(tmp_path: Path, maker) -> None:
    path = tmp_path / "live"
    path.write_bytes(b"".join(maker.scalar("a", step, 1.0) for step in range(60_000)))
    tail = TensorBoardTail(path, limit=1 << 20)
    updates = [tail.read_new()]
    while updates[-1].more:
        updates.append(tail.read_new())
    assert len(updates) > 1
    assert [step for _, step, _ in rows(*updates)] == list(range(60_000))


def test_a_replaced_or_cut_file_is_read_again(tmp_path: Path, maker) -> None:
    path = tmp_path / "live"
    path.write_bytes(maker.scalar("a", 1, 1.0) + maker.scalar("a", 2, 2.0))
    tail = TensorBoardTail(path)
    tail.read_new()
    path.write_bytes(maker.scalar("a", 7, 7.0))
    cut = tail.read_new()
    assert (rows(cut), cut.restarted) == ([("a", 7, 7.0)], True)
    other = tmp_path / "other"
    other.write_bytes(maker.scalar("a", 8, 8.0) * 3)
    other.replace(path)
    replaced = tail.read_new()
    assert (len(rows(replaced)), replaced.restarted) == (3, True)


def test_damage_in_a_live_file_is_said_with_its_offset(tmp_path: Path, maker) -> None:
    path = tmp_path / "live"
    first = maker.scalar("a", 1, 1.0)
    path.write_bytes(first + b"\xff" * 40)
    tail = TensorBoardTail(path)
    (finding,) = tail.read_new().findings
    assert finding.where.offset == len(first)
    with path.open("ab") as file:
        file.write(maker.scalar("a", 2, 2.0))
    update = tail.read_new()
    assert rows(update) == [("a", 2, 2.0)]
    assert update.findings[0].where.offset == len(first)
