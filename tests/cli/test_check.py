"""``proveout check`` with the arguments of check_metrics.py."""

import json

import pytest

from proveout.cli import main

METRICS = {
    "train/reward": {"1": 0.1, "2": 0.2, "3": 0.3},
    "train/loss": {"1": 1.0, "2": float("nan"), "3": 0.5},
    "score": 0.15,
}
REWARD = 'max(data["train/reward"]) > 0.2'


@pytest.fixture
def metrics(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(METRICS))
    return str(path)


def run(capsys, *arguments):
    status = main.run(["check", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_checks_that_hold_exit_0_with_the_table(capsys, metrics, snapshot):
    status, out, _ = run(capsys, metrics, REWARD, 'data["score"] >= 0.1', "--table-width", "110")
    assert status == 0
    assert "Metric Checks" in out
    assert out == snapshot


def test_a_check_that_does_not_hold_exits_1(capsys, metrics):
    status, out, _ = run(capsys, metrics, REWARD, 'max(data["train/reward"]) > 0.5')
    assert status == 1
    assert "PASS" in out
    assert "condition evaluated to False" in out


def test_nan_fails_the_check_that_max_would_pass(capsys, metrics):
    status, out, _ = run(capsys, metrics, 'max(data["train/loss"]) < 1.05')
    assert status == 1
    assert "train/loss is not finite at step 2" in out


def test_explain_draws_the_series_and_marks_the_steps(capsys, metrics, snapshot):
    checks = ('max(data["train/reward"]) < 0.25', 'max(data["train/loss"]) < 1.05')
    status, out, _ = run(capsys, metrics, *checks, "--explain", "--table-width", "110")
    assert status == 1
    assert out == snapshot


def test_json_holds_every_outcome(capsys, metrics):
    status, out, _ = run(capsys, metrics, REWARD, "1 < 2", "--json")
    document = json.loads(out)
    assert status == 0
    assert [check["value"] for check in document["checks"]] == ["0.3", "1"]
    assert document["checks"][1]["vacuous"]


def test_a_hostile_check_fails_without_effect(capsys, metrics, tmp_path):
    target = tmp_path / "made"
    status, out, _ = run(capsys, metrics, f"open({str(target)!r}, 'w') is None")
    assert status == 1
    assert "not allowed" in out or "not a function" in out
    assert not target.exists()


def test_markup_in_a_check_is_printed_as_it_is(capsys, metrics):
    _, out, _ = run(capsys, metrics, '"[red]x[/red]" in data')
    assert "[red]x[/red]" in out


@pytest.mark.parametrize("text", [None, "not json", '{"a": {"1": "x"}}', ""])
def test_a_file_that_is_none_is_one_sentence(capsys, tmp_path, text):
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text)
    status, out, err = run(capsys, str(path), "1 < 2")
    assert status == 2
    assert str(path) in err
    assert "Traceback" not in out + err


def test_what_dump_writes_is_read(capsys, tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"train/loss": {"1": 1.0, "2": "NaN", "3": "Infinity"}}')
    status, out, _ = run(capsys, str(path), 'min(data["train/loss"]) < 2')
    assert status == 1
    assert "steps 2, 3" in out


def test_no_check_is_wrong_usage(capsys, metrics):
    assert run(capsys, metrics)[0] == 2
