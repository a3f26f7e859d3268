"""``proveout compare``."""

import json

import pytest

from proveout.cli import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = {"train/loss": {"1": 0.5, "2": 0.4, "3": 0.25}, "timing/train/total": {"1": 3.0}}
    (tmp_path / "a.json").write_text(json.dumps(base))
    changed = base | {
        "train/loss": {"1": 0.5, "2": 0.44, "3": 0.25, "4": 0.2},
        "timing/train/total": {"1": 9.0},
    }
    (tmp_path / "b.json").write_text(json.dumps(changed))
    return tmp_path


def run(capsys, *arguments):
    status = main.run(["compare", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_equal_files_exit_0(capsys, files):
    status, out, _ = run(capsys, "a.json", "a.json")
    assert status == 0
    assert "1 of 1 judged tags are within tolerance" in out


def test_different_files_exit_1_and_show_both_series(capsys, files, snapshot):
    status, out, _ = run(capsys, "b.json", "a.json")
    assert status == 1
    assert out == snapshot


def test_tolerance_by_tag(capsys, files):
    (files / "c.json").write_text(json.dumps({"train/loss": {"1": 0.5, "2": 0.44, "3": 0.25}}))
    assert run(capsys, "c.json", "a.json", "--rtol", "0.01")[0] == 1
    assert run(capsys, "c.json", "a.json", "--tolerance", "train/*=0.11")[0] == 0
    assert run(capsys, "c.json", "a.json", "--tolerance", "train/loss=0,0.05")[0] == 0


def test_a_golden_file_is_written_and_compared_with_its_tolerances(capsys, files):
    status, _, _ = run(capsys, "a.json", "--save-golden", "golden.json", "--tolerance", "train/loss=0.2")
    assert status == 0
    (files / "c.json").write_text(json.dumps({"train/loss": {"1": 0.5, "2": 0.44, "3": 0.25}}))
    assert run(capsys, "c.json", "golden.json")[0] == 0
    assert run(capsys, "c.json", "a.json")[0] == 1


def test_json(capsys, files):
    status, out, _ = run(capsys, "b.json", "a.json", "--json")
    document = json.loads(out)
    assert (status, document["ok"]) == (1, False)
    (loss,) = [tag for tag in document["tags"] if tag["tag"] == "train/loss"]
    assert loss["only_run"] == [4]
    assert loss["max_abs_step"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("a.json",),
        ("a.json", "missing.json"),
        ("a.json", "b.json", "--rtol", "-1"),
        ("a.json", "b.json", "--tolerance", "x"),
        ("a.json", "b.json", "--tolerance", "x=y"),
        ("a.json", "--save-golden", "no/such/dir/golden.json"),
    ],
)
def test_wrong_usage_is_one_sentence(capsys, files, arguments):
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert err.startswith("proveout: ")
    assert "Traceback" not in out + err
