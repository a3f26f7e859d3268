"""``proveout history`` over run directories as runs leave them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.flow.made_runs import METRICS, a_step, make_run

from proveout.cli import main
from proveout.domain.checkout import Checkout
from proveout.domain.verdict import Verdict
from proveout.flow.indexing import index_run
from proveout.flow.reporting import build

PASS, FAIL = Verdict.PASS, Verdict.FAIL
Ask = Callable[..., tuple[int, str, str]]
CHECKOUT = Checkout(role="bridge", path="/src/bridge", commit="1a2b3c4d5e6f", dirty=("a.py",), diff_hash="d1")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".proveout" / "runs"


@pytest.fixture
def ask(root: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def history(*words: str) -> tuple[int, str, str]:
        status = main.run(["history", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return history


def test_it_takes_in_the_runs_that_it_lacks(root: Path, ask: Ask) -> None:
    first = make_run(root, PASS)
    assert [row["id"] for row in json.loads(ask("--json")[1])] == [first.layout.id]
    second = make_run(root, FAIL, checkouts=[CHECKOUT])
    status, out, _ = ask()
    newest, oldest = out.splitlines()
    assert status == 0
    assert newest.startswith(second.layout.id)
    assert "Fail" in newest
    assert "bridge 1a2b3c4d5+1" in newest
    assert "bench L0 grpo: Pass" in oldest


def test_an_incomplete_run_that_went_on_is_read_again(root: Path, ask: Ask) -> None:
    run = make_run(root, PASS, finished=False)
    assert json.loads(ask("--json")[1])[0]["verdict"] == "Incomplete"
    run.journal.append("run_finished")
    assert json.loads(ask("--json")[1])[0]["verdict"] == "Pass"


def test_a_removed_directory_stays_in_the_history_until_it_is_rebuilt(root: Path, ask: Ask) -> None:
    make_run(root, PASS)
    gone = make_run(root, PASS)
    ask()
    shutil.rmtree(gone.layout.root)
    assert [row["present"] for row in json.loads(ask("--json")[1]) if row["id"] == gone.layout.id] == [False]
    assert "directory removed" in ask()[1]
    assert json.loads(ask("rebuild", "--json")[1]) == {"runs": 1, "unreadable": []}
    assert gone.layout.id not in ask()[1]


def test_a_damaged_history_is_made_anew_by_rebuild(root: Path, ask: Ask) -> None:
    make_run(root, PASS)
    ask()
    for old in root.parent.glob("history.sqlite*"):
        old.write_bytes(b"no database " * 1000)
    status, out, err = ask()
    assert (status, out) == (3, "")
    assert "history rebuild" in err
    assert ask("rebuild")[0] == 0
    assert len(ask()[1].splitlines()) == 1


def test_a_run_that_cannot_be_read_is_named_and_hides_no_other(root: Path, ask: Ask) -> None:
    make_run(root, PASS)
    broken = make_run(root, PASS)
    broken.layout.plan.write_text("{")
    status, out, err = ask()
    assert (status, len(out.splitlines())) == (0, 1)
    assert broken.layout.id in err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--loop", "verl"), 1),
        (("--level", "6"), 1),
        (("--commit", "1a2b"), 1),
        (("--model", "tin"), 3),
        (("--since", "1h"), 3),
        (("--since", "2999-01-01"), 0),
        (("--verdict", "fail"), 1),
        (("--limit", "2"), 2),
    ],
)
def test_filters(root: Path, ask: Ask, words: tuple[str, ...], found: int) -> None:
    make_run(root, PASS, step=a_step(level=6))
    make_run(root, FAIL, step=a_step(loop="verl"))
    make_run(root, PASS, checkouts=[CHECKOUT])
    assert len(json.loads(ask("--json", *words)[1])) == found


@pytest.mark.parametrize(
    "words",
    [
        ("--since", "soon"),
        ("--loop", "bensh"),
        ("--commit", "main"),
        ("--verdict", "good"),
        ("metric", "train/reward"),
        ("metric",),
        ("flakey",),
        ("export", "history.txt"),
        ("export", "no/such/place.csv"),
    ],
)
def test_wrong_usage_is_one_sentence(ask: Ask, words: tuple[str, ...]) -> None:
    status, out, err = ask(*words)
    assert (status, out) == (2, "")
    assert err.startswith("proveout: ")


def test_one_metric_over_runs(root: Path, ask: Ask) -> None:
    for end in (0.6, 0.7):
        make_run(root, PASS, metrics={"train/reward": (0.2, end), "timing/train/x": (5.0, 1.0, 1.0)})
    (line,) = json.loads(ask("metric", "train/reward", "--statistic", "last", "--json")[1])
    assert [point["value"] for point in line["points"]] == [0.6, 0.7]
    (line,) = json.loads(ask("metric", "timing/*", "--json")[1])
    assert (line["statistic"], [point["value"] for point in line["points"]]) == ("median", [1.0, 1.0])
    status, _, err = ask("metric", "train/rewrad")
    assert status == 2
    assert "did you mean 'train/reward'" in err


def test_a_series_with_a_nan_shows_as_not_finite(root: Path, ask: Ask) -> None:
    run = make_run(root, FAIL)
    (attempt,) = run.layout.attempts.iterdir()
    (attempt / "metrics.json").write_text('{"train/reward": {"1": 0.5, "2": "NaN"}}')
    assert "not finite" in ask("metric", "train/reward")[1]


def test_regressions_and_their_exit_status(root: Path, ask: Ask) -> None:
    for _ in range(6):
        make_run(root, PASS)
    assert ask("regressions", "--fail-on-regression")[0] == 0
    slow = make_run(root, PASS, seconds=20.0, metrics={**METRICS, "timing/train/total_step_time": (9.0, 9.0)})
    status, out, _ = ask("regressions", "--fail-on-regression", "--json")
    document = json.loads(out)
    bad = {change["tag"]: change["run"] for change in document["changes"] if change["state"] == "regressed"}
    assert (status, bad) == (1, dict.fromkeys(["seconds", "timing/train/total_step_time"], slow.layout.id))
    assert ask("regressions")[0] == 0


def test_regressions_with_too_few_runs_are_undecided(root: Path, ask: Ask) -> None:
    make_run(root, PASS)
    assert ask("regressions", "--fail-on-regression")[0] == 3


def test_flaky(root: Path, ask: Ask) -> None:
    make_run(root, PASS, checkouts=[CHECKOUT])
    make_run(root, FAIL, checkouts=[CHECKOUT], cause="judge.finite.nan")
    (one,) = json.loads(ask("flaky", "--json")[1])
    assert (one["verdicts"], one["causes"]) == (["Pass", "Fail"], ["judge.finite.nan"])
    assert "1 of 2 attempts failed" in ask("flaky")[1]


def test_another_diff_on_the_same_commit_is_other_code(root: Path, ask: Ask) -> None:
    make_run(root, PASS, checkouts=[CHECKOUT])
    other = Checkout(
        role="bridge", path="/src/bridge", commit="1a2b3c4d5e6f", dirty=("b.py",), diff_hash="d2"
    )
    make_run(root, FAIL, checkouts=[other])
    assert json.loads(ask("flaky", "--json")[1]) == []


def test_where_a_checkout_lies_makes_no_other_command(root: Path, ask: Ask) -> None:
    for place, verdict in (("/a/bridge", PASS), ("/b/bridge", FAIL)):
        here = Checkout(role="bridge", path=place, commit="1a2b")
        make_run(root, verdict, checkouts=[here], step=a_step(f"root={place}/src"))
    assert len(json.loads(ask("flaky", "--json")[1])) == 1


def test_thresholds_are_printed_and_nothing_is_written(root: Path, ask: Ask) -> None:
    for place in range(5):
        make_run(root, PASS, metrics={"train/loss": (0.5, 0.4 + place / 100), "timing/x": (1.0,)})
    ask()
    before = {path for path in root.parent.parent.rglob("*") if "sqlite" not in path.name}
    status, out, _ = ask("thresholds")
    assert status == 0
    assert 'max(data["train/loss"]) < ' in out
    assert "timing/x" not in out
    assert {path for path in root.parent.parent.rglob("*") if "sqlite" not in path.name} == before


def test_export_to_csv_and_parquet_hold_the_same(root: Path, ask: Ask, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    make_run(root, PASS)
    make_run(root, FAIL)
    assert ask("export", "out.csv")[0] == ask("export", "out.parquet")[0] == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert {row["tag"] for row in rows} == set(METRICS)
    table = pyarrow.read_table("out.parquet").to_pylist()
    assert [(row["run"], row["tag"], float(row["last"])) for row in rows] == [
        (row["run"], row["tag"], row["last"]) for row in table
    ]
    out = ask("export", "-", "--table", "steps")[1]
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(out))] == ["Pass", "Fail"]
    assert not list(tmp_path.glob(".out*"))


def test_export_without_pyarrow_names_the_extra(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = ask("export", "out.parquet")
    assert status == 2
    assert "proveout[data]" in err


def test_a_history_that_cannot_be_written_is_a_warning_and_no_more(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(root, PASS)
    (root.parent / "history.sqlite").mkdir()
    index_run(run, build(run))
    assert "warning: the run is not in the history" in capsys.readouterr().err
