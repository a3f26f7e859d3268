"""The history index: many writers, kills, damage, other versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from proveout.domain.errors import BlockedError
from proveout.store.history import queries
from proveout.store.history.index import HistoryIndex
from proveout.store.history.records import Filter, MetricRecord, RunRecord, StepRecord

WRITER = """
import sys
from pathlib import Path
from proveout.store.history.index import HistoryIndex
from tests.store.test_history_index import record
index = HistoryIndex(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    index.add([record(f"{sys.argv[2]}-{number}", started=float(number))])
"""


def record(name: str, started: float = 1.0, **changes: object) -> RunRecord:
    metrics = (MetricRecord(tag="train/reward", points=3, first=0.1, last=0.3, tail=0.2, median=0.2),)
    step = StepRecord(
        step="bench-L0-grpo",
        loop="bench",
        level=0,
        variant="grpo",
        verdict="Pass",
        verdicts=("Pass",),
        metrics=metrics,
    )
    values = {"directory": f"runs/{name}", "verdict": "Pass", "started": started, "steps": (step,)}
    return RunRecord(id=name, **{**values, **changes})


@pytest.fixture
def index(tmp_path: Path) -> HistoryIndex:
    return HistoryIndex(tmp_path / "history.sqlite")


def test_eight_processes_write_at_once_and_nothing_is_lost(index: HistoryIndex) -> None:
    command = [sys.executable, "-c", WRITER, str(index.path)]
    writers = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 8
    assert {row.id for row in queries.runs(index, Filter())} == {
        f"{w}-{n}" for w in range(8) for n in range(25)
    }
    assert len(queries.metrics(index, Filter(), ("train/reward",))) == 200
    with index.connect() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_run_that_is_added_again_is_replaced_with_its_steps_and_metrics(index: HistoryIndex) -> None:
    index.add([record("a"), record("b")])
    index.add([record("a", verdict="Fail", steps=())])
    assert {row.id: row.verdict for row in queries.runs(index, Filter())} == {"a": "Fail", "b": "Pass"}
    assert [row.run for row in queries.metrics(index, Filter())] == ["b"]


def test_a_batch_that_fails_half_way_leaves_nothing(index: HistoryIndex) -> None:
    index.add([record("before")])

    def batch():
        yield record("half")
        raise KeyError("the next one cannot be read")

    with pytest.raises(KeyError):
        index.add(batch())
    assert [row.id for row in queries.runs(index, Filter())] == ["before"]


def test_runs_come_newest_first_and_no_more_than_asked(index: HistoryIndex) -> None:
    index.add(record(f"r{n}", started=float(n)) for n in range(5))
    assert [row.id for row in queries.runs(index, Filter(), limit=2)] == ["r4", "r3"]
    assert [row.id for row in queries.runs(index, Filter(since=3.0))] == ["r4", "r3"]
    assert queries.count(index) == 5


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(loop="verl"), ["verl"]),
        (Filter(level=6), ["deep"]),
        (Filter(loop="bench", level=0), ["plain"]),
        (Filter(model="QWEN"), ["deep"]),
        (Filter(model="%"), []),
        (Filter(commit="1A2B"), ["verl"]),
        (Filter(commit="2"), []),
        (Filter(verdict="Fail"), ["deep"]),
    ],
)
def test_filters(index: HistoryIndex, wanted: Filter, expected: list[str]) -> None:
    def step(loop: str, level: int) -> StepRecord:
        return StepRecord(step="s", loop=loop, level=level, variant="default", verdict="Pass")

    index.add(
        [
            record("plain", steps=(step("bench", 0),)),
            record("deep", model="Qwen3-0.6B", verdict="Fail", steps=(step("bench", 6),)),
            record("verl", commits=("1a2b3c", "ffff"), steps=(step("verl", 0),)),
        ]
    )
    assert [row.id for row in queries.runs(index, wanted)] == expected


def test_a_damaged_file_is_named_with_what_to_do_and_can_be_set_aside(index: HistoryIndex) -> None:
    index.path.write_bytes(b"this is no database, " * 500)
    with pytest.raises(BlockedError) as caught:
        index.add([record("a")])
    assert "history rebuild" in caught.value.remedy
    assert index.damaged
    index.start_anew()
    index.add([record("a")])
    assert queries.count(index) == 1
    assert index.path.with_name("history.sqlite.damaged").exists()


def test_an_index_of_another_version_is_made_anew(index: HistoryIndex) -> None:
    index.add([record("old")])
    connection = sqlite3.connect(index.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    index.add([record("new")])
    assert [row.id for row in queries.runs(index, Filter())] == ["new"]
