"""JSON, JSON lines, CSV and trainer states; and what every reader does with anything at all."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proveout.capture import metrics_json
from proveout.capture.metrics import read_any
from proveout.capture.metrics_json import write_metrics_json
from proveout.capture.registry import READERS
from proveout.domain.errors import UsageError
from proveout.domain.metrics import MetricTable, Series

shared = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
tables = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.dictionaries(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
)


def plain(table: MetricTable) -> dict[str, dict[int, str]]:
    return {tag: {step: repr(value) for step, value in s} for tag, s in table.series.items()}


@shared
@given(data=tables)
def test_written_json_reads_back_the_same(data: dict[str, dict[int, float]], tmp_path: Path) -> None:
    table = MetricTable({tag: Series.of(points) for tag, points in data.items()})
    path = tmp_path / "metrics.json"
    write_metrics_json(table, path)
    read, findings = read_any(path)
    assert plain(read) == plain(table)
    assert findings == ()
    assert list(tmp_path.iterdir()) == [path]

    def refuse(word: str) -> float:
        raise ValueError(word)

    strict = json.loads(path.read_text(), parse_constant=refuse)
    assert {
        tag: {int(s): repr(float(v)) for s, v in points.items()} for tag, points in strict.items()
    } == plain(table)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.json"
    path.write_text("{}")

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(metrics_json, "_object", full)
    with pytest.raises(OSError, match="No space"):
        write_metrics_json(MetricTable({"a": Series.of({1: 1.0})}), path)
    assert path.read_text() == "{}"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_replaces_the_file_and_never_changes_it_in_place(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text("{}")
    with path.open() as reader:
        write_metrics_json(MetricTable({"a": Series.of({1: 1.0})}), path)
        assert reader.read() == "{}", "who reads the old file reads it to its end"
    assert json.loads(path.read_text()) == {"a": {"1": 1.0}}


def test_json_with_every_way_to_write_nan_and_repeated_keys(tmp_path: Path) -> None:
    path = tmp_path / "any name"
    path.write_text(
        '{"a": {"1": NaN, "2": "NaN", "3": null, "4": -Infinity, "5": "Infinity", "6": 1, "6": 2}}'
    )
    table, findings = read_any(path)
    series = table.series["a"]
    assert series.non_finite_steps() == [1, 2, 3, 4, 5]
    assert series.as_dict()[6] == 2.0
    assert [(c.step, c.kept, c.other) for c in table.conflicts] == [(6, 2.0, 1.0)]
    assert [f.id for f in findings] == ["capture.metrics.conflict"]


def test_json_that_is_not_what_is_expected_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"a": {"1": 1.0, "x": 2, "3": [4], "1.5": 2}, "b": 3}')
    table, findings = read_any(path)
    assert plain(table) == {"a": {1: "1.0"}}
    assert [f.id for f in findings] == [
        "capture.json.step",
        "capture.json.value",
        "capture.json.step",
        "capture.json.shape",
    ]
    path.write_text('{"a": {"1": 1.0},\n "b": ')
    (finding,) = read_any(path)[1]
    assert (finding.id, finding.where.line, finding.where.offset) == ("capture.json.malformed", 2, 24)


def test_trainer_state(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    history = [
        {"step": 1, "loss": 0.5, "epoch": 0.1, "note": None},
        {"step": 2, "loss": math.nan, "grad_norm": 1.25},
        {"loss": 9.0},
    ]
    path.write_text(json.dumps({"best_metric": None, "global_step": 2, "log_history": history}, indent=2))
    table, findings = read_any(path)
    assert table.series["grad_norm"].as_dict() == {2: 1.25}
    assert table.series["loss"].non_finite_steps() == [2]
    assert [f.id for f in findings] == ["capture.trl-state.entry"]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(
        '{"step": 1, "train": {"loss": 0.5, "kl": {"mean": 1}}, "_timestamp": 1700000000.5, "text": "x"}\n'
        "\n"
        '{"step": 2, "train": {"loss": NaN}}\n'
        "not json\n"
        '{"loss": 3}\n'
        '{"step": 3, "tag": "long", "value": 4}\n'
        '{"step": 4, "train": {"lo'
    )
    table, findings = read_any(path)
    assert table.series["train/kl/mean"].as_dict() == {1: 1.0}
    assert table.series["train/loss"].wall[0] == 1700000000.5
    assert table.series["train/loss"].non_finite_steps() == [2]
    assert table.series["long"].as_dict() == {3: 4.0}
    assert [(f.id, f.where.line) for f in findings] == [
        ("capture.jsonl.malformed", 4),
        ("capture.jsonl.step", 5),
        ("capture.jsonl.truncated", 7),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step,loss,kl\n1,0.5,\n2,nan,1e-3\n", {"loss": {1: "0.5", 2: "nan"}, "kl": {2: "0.001"}}),
        ("tag,step,value\na,1,2\nb,1,3\n", {"a": {1: "2.0"}, "b": {1: "3.0"}}),
        ("Wall time,Step,Value\n1700000000.5,1,2\n", {"m": {1: "2.0"}}),
        ('"step","a, b"\r\n7.0,-inf\r\n', {"a, b": {7: "-inf"}}),
    ],
)
def test_csv(text: str, expected: dict[str, dict[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(text)
    table, findings = read_any(path)
    assert plain(table) == expected
    assert findings == ()


def test_csv_cells_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("step,loss\n1,high\nx,2\n3,4,5\n4,1.0\n")
    table, findings = read_any(path)
    assert plain(table) == {"loss": {4: "1.0"}}
    assert [(f.id, f.where.line) for f in findings] == [
        ("capture.csv.value", 2),
        ("capture.csv.row", 3),
        ("capture.csv.row", 4),
    ]


SEEDS = [
    b'{"a": {"1": 1.0, "2": NaN}}',
    b'{"step": 1, "loss": 0.5}\n{"step": 2}\n',
    b"step,loss\n1,2\n",
    b"\x1b[36m(T pid=1)\x1b[0m step:1 - a:np.float64(2.0) - b:nan\r\n",
    b"\r 5%|# | 1/20 [00:00<00:02]\r{'loss': '0.5', 'epoch': '0.1'}\n\r 10%|# | 2/20 [00:00<00:02]",
    b'{\n  "global_step": 1, "log_history": [{"step": 1, "loss": 2}]}',
]


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.sampled_from(SEEDS),
    noise=st.one_of(
        st.binary(max_size=60), st.text("{}[]'\":,-0123456789eNaInf.\n\r ", max_size=60).map(str.encode)
    ),
    at=st.integers(0, 80),
    cut=st.integers(0, 20),
)
def test_no_reader_falls_over_anything(
    name: str, seed: bytes, noise: bytes, at: int, cut: int, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    data = seed[:at] + noise + seed[at + cut :]
    path.write_bytes(data)
    for reading in READERS[name].read(path):
        assert all(f.where.file and f.where.file.startswith(str(path)) for f in reading.all_findings())
    READERS[name].recognises(path, data)


@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000, '{"a": {"1": ' + "9" * 100_000 + "}}", '{"step": 1, "a":' + "[" * 9999]
)
@pytest.mark.parametrize("name", ["nemo-json", "trl-state", "jsonl"])
def test_deep_and_huge_json(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(text)
    (reading,) = READERS[name].read(path)
    assert reading.all_findings()
    READERS[name].recognises(path, text.encode()[: 64 << 10])


@pytest.mark.parametrize(
    ("name", "content"), [("empty", b""), ("prose", b"hello\n"), ("noise", bytes(range(256)) * 9)]
)
def test_what_no_reader_knows_is_a_usage_error(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError, match="no metrics") as error:
        read_any(path)
    assert "nemo-json" in error.value.remedy
    with pytest.raises(UsageError, match="No such file"):
        read_any(tmp_path / "absent")
    with pytest.raises(UsageError, match="no metric files"):
        (tmp_path / "d").mkdir()
        read_any(tmp_path / "d")
