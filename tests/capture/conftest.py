"""Event files made with TensorBoard's own messages, and TensorBoard's own reading of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import google_crc32c
import pytest

event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
tensor_pb2 = pytest.importorskip("tensorboard.compat.proto.tensor_pb2")

REAL = Path(__file__).parent / "data" / "events.out.tfevents.1795964427.vm.22934.0"


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


class Maker:
    """Bytes of event files."""

    frame = staticmethod(frame)

    def header(self, wall: float = 1e9) -> bytes:
        return frame(event_pb2.Event(wall_time=wall, file_version="brain.Event:2").SerializeToString())

    def scalar(self, tag: str, step: int, value: float, wall: float = 1e9) -> bytes:
        event = event_pb2.Event(wall_time=wall, step=step)
        event.summary.value.add(tag=tag, simple_value=value)
        return frame(event.SerializeToString())

    def tensor(
        self, tag: str, step: int, tensor: object, wall: float = 1e9, plugin: str | None = "scalars"
    ) -> bytes:
        event = event_pb2.Event(wall_time=wall, step=step)
        value = event.summary.value.add(tag=tag, tensor=tensor)
        if plugin is not None:
            value.metadata.plugin_data.plugin_name = plugin
        return frame(event.SerializeToString())

    def double(self, tag: str, step: int, value: float, wall: float = 1e9) -> bytes:
        return self.tensor(tag, step, tensor_pb2.TensorProto(dtype=2, double_val=[value]), wall)

    def image(self, tag: str, step: int, wall: float = 1e9) -> bytes:
        event = event_pb2.Event(wall_time=wall, step=step)
        event.summary.value.add(tag=tag).image.encoded_image_string = b"\x89PNG" + bytes(40)
        return frame(event.SerializeToString())

    def restart(self, step: int, wall: float = 1e9) -> bytes:
        event = event_pb2.Event(wall_time=wall, step=step)
        event.session_log.status = 1
        return frame(event.SerializeToString())

    def run(
        self,
        path: Path,
        steps: Iterable[int],
        wall: float,
        tags: Iterable[str] = ("train/loss",),
        value: Callable[[int], float] = float,
    ) -> Path:
        """An event file of one run: a record a second from ``wall`` on."""
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [self.header(wall)]
        for second, step in enumerate(steps):
            records += [self.scalar(tag, step, value(step), wall + second) for tag in tags]
        path.write_bytes(b"".join(records))
        return path


@pytest.fixture(scope="session")
def maker() -> Maker:
    return Maker()


@pytest.fixture(scope="session")
def real_events() -> Path:
    """A complete event file of a real NeMo-RL run that resumed at step 3."""
    return REAL


@pytest.fixture(scope="session")
def accumulated() -> Callable[[Path], dict[str, list[tuple[float, int, float]]]]:
    """TensorBoard's reading of a file: ``{tag: [(time, step, value)]}``."""
    from tensorboard.backend.event_processing import event_accumulator

    def read(path: Path) -> dict[str, list[tuple[float, int, float]]]:
        found = event_accumulator.EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
        found.Reload()
        return {
            tag: [(event.wall_time, event.step, event.value) for event in found.Scalars(tag)]
            for tag in found.scalars.Keys()
        }

    return read
