"""Event files read as TensorBoard reads them, by the record parser and by the vectorised path alike."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proveout.capture.events import batch, file, frames, predict
from proveout.capture.events.crc import LengthCheck
from proveout.capture.reading import Reading
from proveout.capture.registry import READERS

Accumulated = Callable[[Path], dict[str, list[tuple[float, int, float]]]]
TAGS = ("a", "train/loss", "train/grad_norm", "ray/node.0.gpu.0.util", "été/κ")


def read(path: Path) -> Reading:
    (reading,) = READERS["tensorboard"].read(path)
    return reading


def points(reading: Reading) -> dict[str, list[tuple[str, int, str]]]:
    """Comparable points: NaN equals NaN, -0.0 differs from 0.0."""
    return {
        tag: [(repr(w), s, repr(v)) for w, s, v in zip(p.wall, p.steps, p.values, strict=True)]
        for tag, p in reading.points.items()
    }


def comparable(found: dict[str, list[tuple[float, int, float]]]) -> dict[str, list[tuple[str, int, str]]]:
    return {tag: [(repr(w), s, repr(v)) for w, s, v in rows] for tag, rows in found.items()}


@pytest.fixture(params=["records", "arrays"])
def path_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to read a file, the second with its thresholds so low that small files take it."""
    if request.param == "records":
        monkeypatch.setattr(file, "_BATCH_RECORDS", 1 << 40)
        monkeypatch.setattr(file, "_PREDICT_FROM", 1 << 40)
    else:
        monkeypatch.setattr(file, "_BATCH_RECORDS", 1)
        monkeypatch.setattr(file, "_PREDICT_FROM", 0)
        monkeypatch.setattr(file, "CHUNK", 701)
        monkeypatch.setattr(frames, "_LEARN", 4)
        monkeypatch.setattr(batch, "_MIN_ROWS", 1)
    return str(request.param)


events = st.lists(
    st.tuples(
        st.sampled_from(TAGS),
        st.one_of(st.integers(0, 300), st.integers(-(1 << 63), (1 << 63) - 1)),
        st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf, -0.0])),
        st.floats(1e8, 2e9),
    ),
    max_size=40,
)
shared = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@shared
@given(rows=events, repeat=st.integers(1, 4))
def test_random_files_read_as_tensorboard_reads_them(
    rows: list[tuple[str, int, float, float]],
    repeat: int,
    tmp_path: Path,
    maker,
    accumulated: Accumulated,
    path_taken: str,
) -> None:
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(maker.header() + b"".join(maker.scalar(*row) for row in rows) * repeat)
    reading = read(path)
    assert points(reading) == comparable(accumulated(path))
    assert reading.all_findings() == []


def test_a_long_regular_log_reads_as_tensorboard_reads_it(
    tmp_path: Path, maker, accumulated: Accumulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step numbers grow over two varint sizes, images and irregular records come between."""
    monkeypatch.setattr(file, "CHUNK", 100_000)
    monkeypatch.setattr(file, "_PREDICT_FROM", 1000)
    monkeypatch.setattr(file, "_BATCH_RECORDS", 500)
    numbers = random.Random(7)
    data = [maker.header()]
    for step in range(1, 700):
        data += [maker.scalar(f"train/metric_{i}", step, numbers.gauss(0, 1), 1e9 + step) for i in range(20)]
        if step % 97 == 0:
            data += [maker.image("samples", step), maker.scalar("validation/accuracy", step, step / 7)]
        if step == 333:
            data.append(maker.scalar("train/metric_3", 5, 0.25))
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(b"".join(data))
    batches = []
    take = file.EventReader._take_batch
    monkeypatch.setattr(file.EventReader, "_take_batch", lambda *a: (batches.append(1), take(*a))[1])
    reading = read(path)
    assert len(batches) > 3
    assert points(reading) == comparable(accumulated(path))
    assert reading.other_tags == {"samples"}


def test_tags_whose_checksums_collide_are_told_apart(tmp_path: Path, maker, path_taken: str) -> None:
    numbers = random.Random(1)
    seen: dict[int, str] = {}
    pair: tuple[str, str] | None = None
    while pair is None:
        tag = f"{numbers.getrandbits(48):012x}"
        other = seen.setdefault(google_crc32c.value(tag.encode()), tag)
        pair = (other, tag) if other != tag else None
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(b"".join(maker.scalar(tag, step, step) for step in range(1, 20) for tag in pair))
    reading = read(path)
    assert {tag: list(p.steps) for tag, p in reading.points.items()} == {
        tag: list(range(1, 20)) for tag in pair
    }
    assert reading.all_findings() == []


@pytest.mark.parametrize("cut", [95_000, 100_000, 101_111])
def test_a_learned_sequence_goes_on_in_the_next_buffer(cut: int, maker) -> None:
    """At whatever place the buffer was cut, and within a longer sequence that a shorter one repeats in."""
    cycle = [maker.scalar(tag, 1, 1.0) for tag in ("a", "bb") * 30 + ("ccc", "a", "dddd")]
    data = b"".join(cycle * 60)
    predictor, known = predict.Predictor(), LengthCheck()
    first = frames.scan(data[:cut], 0, known, predictor)
    one_by_one: list[int] = []

    def counting(length: int, stored: int) -> bool:
        one_by_one.append(length)
        return known(length, stored)

    second = frames.scan(data[first.stopped :], 0, counting, predictor)  # type: ignore[arg-type]
    assert len(second.starts) > len(cycle)
    assert one_by_one == []
    starts = [*first.starts, *(first.stopped + start for start in second.starts)]
    assert starts == list(accumulate((len(part) for part in (cycle * 60)[:-1]), initial=12))


def test_a_restart_marker_voids_what_came_at_or_after_its_step(
    tmp_path: Path, maker, accumulated: Accumulated, path_taken: str
) -> None:
    data = [maker.header()]
    data += [maker.scalar("train/loss", step, float(step)) for step in range(1, 40)]
    data += [maker.restart(20)]
    data += [maker.scalar("train/loss", step, -float(step)) for step in range(20, 30)]
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(b"".join(data))
    reading = read(path)
    assert points(reading) == comparable(accumulated(path))
    assert list(reading.points["train/loss"].steps) == list(range(1, 30))
    if path_taken == "records":
        assert "restarted at step 20: 20 earlier values" in reading.findings[0].what


FORMS = [
    (1, "float_val", "<f", 0.5),
    (2, "double_val", "<d", 0.1),
    (3, "int_val", "<i", -3),
    (4, "int_val", "<B", 250),
    (5, "int_val", "<h", -300),
    (6, "int_val", "<b", -5),
    (9, "int64_val", "<q", -(1 << 40)),
    (10, "bool_val", "<?", True),
    (17, "int_val", "<H", 65000),
    (19, "half_val", "<e", 1.5),
    (22, "uint32_val", "<I", 1 << 31),
    (23, "uint64_val", "<Q", 1 << 63),
]


@pytest.mark.parametrize("content", [True, False], ids=["content", "values"])
@pytest.mark.parametrize("shape", [None, (), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize(("dtype", "field", "form", "value"), FORMS, ids=str)
def test_tensor_scalars_of_every_type(
    dtype: int,
    field: str,
    form: str,
    value: float,
    shape: tuple[int, ...] | None,
    content: bool,
    tmp_path: Path,
    maker,
    path_taken: str,
) -> None:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    tensor = TensorProto(dtype=dtype)
    if shape is not None:
        tensor.tensor_shape.SetInParent()
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
    if content:
        tensor.tensor_content = struct.pack(form, value)
    else:
        stored = struct.unpack("<H", struct.pack(form, value))[0] if dtype == 19 else value
        getattr(tensor, field).append(stored)
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(
        maker.header() + maker.tensor("t", 3, tensor) + maker.tensor("t", 4, tensor, plugin=None)
    )
    reading = read(path)
    assert list(reading.points["t"].steps) == [3, 4], "the plugin may be named in the first record only"
    assert list(reading.points["t"].values) == [float(value)] * 2


def test_bfloat16_and_what_is_no_scalar(tmp_path: Path, maker, path_taken: str) -> None:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    bits = struct.unpack("<I", struct.pack("<f", 1.5))[0] >> 16
    vector = TensorProto(dtype=1, float_val=[1.0, 2.0])
    vector.tensor_shape.dim.add(size=2)
    path = tmp_path / "events.out.tfevents.1.x"
    path.write_bytes(
        maker.tensor("b", 1, TensorProto(dtype=14, half_val=[bits]))
        + maker.tensor("vector", 1, vector)
        + maker.tensor("text", 1, TensorProto(dtype=7, string_val=[b"x"]), plugin="text")
        + maker.tensor("no plugin", 1, TensorProto(dtype=1, float_val=[1.0]), plugin=None)
        + maker.image("image", 1)
    )
    reading = read(path)
    assert {tag: list(found.values) for tag, found in reading.points.items()} == {"b": [1.5]}
    assert reading.other_tags == {"vector", "text", "no plugin", "image"}


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("new_style", [False, True])
def test_files_of_the_torch_writer(double: bool, new_style: bool, tmp_path: Path, path_taken: str) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(30):
            writer.add_scalar(
                "train/loss", 1 / (step + 3), step, new_style=new_style, double_precision=double
            )
    (path,) = tmp_path.iterdir()
    found = read(path).points["train/loss"]
    assert list(found.steps) == list(range(30))
    exact = [1 / (step + 3) for step in range(30)]
    single = [struct.unpack("<f", struct.pack("<f", value))[0] for value in exact]
    assert list(found.values) == (exact if double and new_style else single)


def test_a_record_too_large_for_a_scalar_is_passed_over(
    tmp_path: Path, maker, monkeypatch: pytest.MonkeyPatch, path_taken: str
) -> None:
    monkeypatch.setattr(frames, "MAX_RECORD", 2000)
    path = tmp_path / "events.out.tfevents.1.x"
    first = maker.scalar("a", 1, 1.0)
    path.write_bytes(first + maker.frame(bytes(3000)) + maker.scalar("a", 2, 2.0))
    reading = read(path)
    assert list(reading.points["a"].steps) == [1, 2]
    assert [(f.id, f.where.offset) for f in reading.findings] == [("capture.events.too-large", len(first))]
