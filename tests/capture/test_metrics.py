"""Sources in, one table out: attempts apart, conflicts shown."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proveout.capture import settle
from proveout.capture.metrics import read_any, read_metrics
from proveout.capture.reading import Reading
from proveout.domain.errors import UsageError
from proveout.domain.finding import Finding
from proveout.domain.metrics import MetricTable
from proveout.domain.step import MetricSource


def tensorboard(base: Path, path: str = "logs", **options: float) -> tuple[MetricTable, tuple[Finding, ...]]:
    return read_metrics([MetricSource(format="tensorboard", path=path)], base, **options)


def test_a_run_that_starts_over_replaces_the_one_before(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/exp_001/tensorboard/events.out.tfevents.1", range(1, 11), 1e9)
    maker.run(
        tmp_path / "logs/exp_002/tensorboard/events.out.tfevents.2",
        range(1, 4),
        1e9 + 100,
        value=lambda s: -s,
    )
    table, findings = tensorboard(tmp_path)
    assert table.series["train/loss"].as_dict() == {1: -1.0, 2: -2.0, 3: -3.0}
    assert table.last_step() == 3
    (left,) = table.left_out
    assert "exp_001" in left
    assert "steps 1 to 10" in left
    assert [f.id for f in findings] == ["capture.metrics.other-attempt"]


def test_a_run_that_logged_no_step_hides_what_an_earlier_one_left(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(1, 11), 1e9)
    maker.run(tmp_path / "logs/exp_002/events.out.tfevents.2", [0], 1e9 + 100, tags=["timing/setup/total"])
    table, _ = tensorboard(tmp_path)
    assert table.tags() == ["timing/setup/total"]
    empty = tmp_path / "logs/exp_003/events.out.tfevents.1000000900.host"
    empty.parent.mkdir()
    empty.touch()
    table, _ = tensorboard(tmp_path)
    assert table.tags() == []
    assert len(table.left_out) == 2


def test_a_resumed_run_goes_on_from_the_one_before(tmp_path: Path, maker) -> None:
    tags = ["train/loss", "ray/node.0.gpu.0.util"]
    maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(6), 1e9, tags)
    maker.run(
        tmp_path / "logs/exp_002/events.out.tfevents.2",
        [0, 4, 5, 6],
        1e9 + 100,
        tags,
        value=lambda s: -s - 1.0,
    )
    table, findings = tensorboard(tmp_path)
    assert table.series["train/loss"].as_dict() == {0: -1, 1: 1, 2: 2, 3: 3, 4: -5, 5: -6, 6: -7}
    assert table.series["ray/node.0.gpu.0.util"].as_dict() == {0: -1, 4: -5, 5: -6, 6: -7}, (
        "seconds of the last start"
    )
    assert [(c.step, c.kept, c.other) for c in table.conflicts] == [(4, -5.0, 4.0), (5, -6.0, 5.0)]
    (finding,) = findings
    assert (finding.id, finding.severity) == ("capture.metrics.trained-again", "notice")
    assert "steps 4 to 5" in finding.what


def test_two_files_written_at_once_are_one_run(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/events.out.tfevents.1.a", range(1, 9), 1e9)
    maker.run(tmp_path / "logs/events.out.tfevents.1.b", range(1, 9), 1e9 + 1, tags=["validation/accuracy"])
    table, findings = tensorboard(tmp_path)
    assert table.tags() == ["train/loss", "validation/accuracy"]
    assert findings == ()


def test_a_conflict_within_a_run_is_shown_and_nan_agrees_with_nan(tmp_path: Path, maker) -> None:
    path = tmp_path / "logs/events.out.tfevents.1"
    path.parent.mkdir()
    path.write_bytes(
        maker.scalar("a", 1, 1.0, 1e9)
        + maker.scalar("a", 2, float("nan"), 1e9)
        + maker.scalar("a", 1, 3.0, 1e9)
        + maker.scalar("a", 2, float("nan"), 1e9)
    )
    table, findings = tensorboard(tmp_path)
    assert list(table.series["a"].steps) == [1, 2]
    assert [(c.step, c.kept, c.other, c.source) for c in table.conflicts] == [(1, 3.0, 1.0, str(path))]
    (finding,) = findings
    assert (finding.severity, finding.where.metric, finding.where.step) == ("warning", "a", 1)
    assert finding.evidence[0].what == "3.0 kept, 1.0 not"


@settings(max_examples=80, deadline=None)
@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(-3, 9), st.sampled_from([1.0, 2.0, math.nan, math.inf]))),
        min_size=1,
        max_size=3,
    )
)
def test_few_and_many_points_settle_alike_and_as_said(parts: list[list[tuple[int, float]]]) -> None:
    readings = []
    kept: dict[int, float] = {}
    for number, rows in enumerate(parts):
        readings.append(Reading(f"file {number}"))
        for step, value in rows:
            readings[-1].add("a", step, value, 0.0)
            kept[step] = value
    few = settle.settle(readings)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(settle, "_MANY", 0)
        many = settle.settle(readings)
    expected = [
        (step, repr(kept[step]), repr(value), f"file {number}")
        for number, rows in enumerate(parts)
        for step, value in rows
        if repr(value) != repr(kept[step])
    ]
    for table in (few, many):
        found = table.get("a")
        assert [(s, repr(v)) for s, v in found or ()] == [(s, repr(v)) for s, v in sorted(kept.items())]
        shown = [(c.step, repr(c.kept), repr(c.other), c.source) for c in table.conflicts]
        assert sorted(shown) == sorted(expected)
    assert repr(few.conflicts) == repr(many.conflicts)


def test_what_began_before_the_attempt_is_left_out(tmp_path: Path, maker) -> None:
    """Even if the stale file was touched since."""
    stale = maker.run(tmp_path / "logs/a/events.out.tfevents.1", range(1, 9), 1e9)
    maker.run(tmp_path / "logs/b/events.out.tfevents.2", range(5, 7), 1e9 + 100)
    table, _ = tensorboard(tmp_path, not_before=1e9 + 50)
    assert table.series["train/loss"].as_dict() == {5: 5.0, 6: 6.0}
    assert table.left_out == [f"{stale}: written before this attempt began"]
    assert tensorboard(tmp_path, not_before=1e9 + 101)[0].tags() == []


def test_globs_files_and_what_is_missing(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/exp_001/tensorboard/events.out.tfevents.1", [1], 1e9)
    assert tensorboard(tmp_path, "logs/exp_*/tensorboard")[0].tags() == ["train/loss"]
    assert tensorboard(tmp_path, "logs/**/*tfevents*")[0].tags() == ["train/loss"]
    table, findings = tensorboard(tmp_path, "other/*")
    assert table.tags() == []
    assert [(f.id, f.where.file) for f in findings] == [
        ("capture.metrics.missing", str(tmp_path / "other/*"))
    ]
    with pytest.raises(UsageError, match="did you mean 'nemo-json'"):
        read_metrics([MetricSource(format="nemojson", path="x")], tmp_path)


def test_sources_are_joined_and_a_nan_in_one_of_them_shows(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/events.out.tfevents.1", [1, 2], 1e9, value=lambda step: 1 / step)
    (tmp_path / "run.log").write_text(
        "step:1 - train/loss:1.0001 - b:2\nstep:2 - train/loss:nan\nstep:3 - train/loss:7\n"
    )
    sources = [
        MetricSource(format="tensorboard", path="logs"),
        MetricSource(format="verl-console", path="run.log"),
    ]
    table, findings = read_metrics(sources, tmp_path)
    assert table.series["train/loss"].as_dict() == {1: 1.0, 2: 0.5, 3: 7.0}
    assert table.series["b"].as_dict() == {1: 2.0}
    assert [(c.tag, c.step, c.kept) for c in table.conflicts] == [("train/loss", 2, 0.5)]
    assert [f.where.step for f in findings] == [2]


def test_the_real_run_reads_rightly(real_events: Path) -> None:
    table, findings = read_any(real_events)
    assert (len(table.tags()), table.last_step(), findings) == (89, 4, ())
    assert list(table.series["train/loss"].steps) == [3, 4]


def test_numpy_is_loaded_for_large_files_only(tmp_path: Path, real_events: Path, maker) -> None:
    program = (
        "import sys; from pathlib import Path; from proveout.capture.metrics import read_any\n"
        "assert read_any(Path(sys.argv[1]))[0].series; print('numpy' in sys.modules)"
    )
    large = tmp_path / "events.out.tfevents.1"
    large.write_bytes(b"".join(maker.scalar("a", step, 1.0) for step in range(9000)))
    for path, expected in ((real_events, "False"), (large, "True")):
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
