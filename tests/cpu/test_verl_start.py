"""What stands ready before verl starts: data and a tiny model, made once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

start = pytest.importorskip("proveout_cpu.verl.start")
pytest.importorskip("torch")
pytest.importorskip("pyarrow")


def digest(model: Path) -> str:
    return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "WARM_STEPS", 1)


def test_a_model_that_was_made_before_is_copied_for_its_seed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(start.KEPT, str(tmp_path / "models"))
    start.prepare(tmp_path / "one", "qwen2", 0)
    start.prepare(tmp_path / "other", "qwen2", 1)

    def never(*_: object) -> int:
        raise AssertionError("made again")

    monkeypatch.setattr("proveout_cpu.tiny.model.write", never)
    start.prepare(tmp_path / "again", "qwen2", 0)
    one, other, again = (digest(tmp_path / name / "model") for name in ("one", "other", "again"))
    assert one == again != other


def test_a_place_that_cannot_be_written_keeps_nothing_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(start.KEPT, str(tmp_path / "file" / "models"))
    start.prepare(tmp_path / "run", "qwen2", 0)
    assert (tmp_path / "run" / "model" / "config.json").is_file()
    assert [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".")] == []
