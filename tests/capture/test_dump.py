"""``proveout dump`` in the place of json_dump_tb_logs.py: the same JSON, and right where that script is not."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proveout.cli.main import root


def dump(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["dump", *map(str, arguments)], standalone_mode=False)


def written(tmp_path: Path, logs: Path, *options: str) -> dict[str, dict[str, float]]:
    out = tmp_path / "metrics.json"
    result = dump(logs, "--output_path", out, *options)
    assert (result.exception, result.return_value) == (None, 0), result.output

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(out.read_text(), parse_constant=refuse)


def test_the_same_json_on_clean_data(tmp_path: Path, maker, accumulated) -> None:
    path = maker.run(
        tmp_path / "logs/exp_001/tensorboard/events.out.tfevents.1", range(30), 1e9, ["b/x", "a"], math.sin
    )
    expected = {
        tag: {str(step): value for _, step, value in rows} for tag, rows in sorted(accumulated(path).items())
    }
    found = written(tmp_path, tmp_path / "logs")
    assert found == expected
    assert (list(found), list(found["a"])) == (["a", "b/x"], [str(step) for step in range(30)])


def test_the_same_json_of_a_real_run(tmp_path: Path, real_events: Path, accumulated) -> None:
    expected = {
        tag: {str(step): value for _, step, value in rows} for tag, rows in accumulated(real_events).items()
    }
    assert written(tmp_path, real_events.parent) == expected


def test_order_is_that_of_the_records_not_of_modification_times(tmp_path: Path, maker) -> None:
    old = maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(1, 5), 1e9)
    new = maker.run(
        tmp_path / "logs/exp_002/events.out.tfevents.2", range(3, 6), 1e9 + 100, value=lambda s: -s
    )
    os.utime(new, (1e9, 1e9))
    os.utime(old, (2e9, 2e9))
    assert written(tmp_path, tmp_path / "logs")["train/loss"] == {"1": 1, "2": 2, "3": -3, "4": -4, "5": -5}


def test_runs_are_not_merged_silently(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(1, 9), 1e9)
    maker.run(tmp_path / "logs/exp_002/events.out.tfevents.2", range(1, 3), 1e9 + 100, value=lambda s: -s)
    result = dump(tmp_path / "logs", "--output_path", tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text()) == {"train/loss": {"1": -1, "2": -2}}
    assert "exp_001: left out: steps 1 to 8: an earlier attempt" in result.stderr
    assert written(tmp_path, tmp_path / "logs", "--runs", "exp_001")["train/loss"]["8"] == 8
    merged = written(tmp_path, tmp_path / "logs", "--runs", "all")["train/loss"]
    assert (merged["1"], merged["2"], merged["8"]) == (-1, -2, 8)
    wrong = dump(tmp_path / "logs", "--runs", "exp_01")
    assert "did you mean 'exp_001'" in str(wrong.exception)


def test_a_conflict_is_said_without_the_flag_and_exits_1_with_it(tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(1, 5), 1e9)
    maker.run(tmp_path / "logs/exp_002/events.out.tfevents.2", range(1, 3), 1e9 + 100, value=lambda s: -s)
    out = tmp_path / "m.json"
    merged = dump(tmp_path / "logs", "--output_path", out, "--runs", "all")
    assert merged.return_value == 0
    assert "warning: train/loss, step 1: two records disagree at 2 step(s) (1, 2)" in merged.stderr
    out.unlink()
    result = dump(tmp_path / "logs", "--output_path", out, "--error-on-conflicts")
    assert result.return_value == 1
    assert "train/loss has two values at step 1: -1.0 in" in result.stderr
    assert not out.exists()


def test_nan_is_no_conflict_with_itself_and_makes_valid_json(tmp_path: Path, maker) -> None:
    for number in (1, 2):
        maker.run(
            tmp_path / f"logs/exp_00{number}/events.out.tfevents.{number}",
            range(1, 4),
            1e9 * number,
            value=lambda s: [math.nan, math.inf, -math.inf][s - 1],
        )
    found = written(tmp_path, tmp_path / "logs", "--error-on-conflicts")
    assert found == {"train/loss": {"1": "NaN", "2": "Infinity", "3": "-Infinity"}}
    assert math.isnan(float(found["train/loss"]["1"]))


def test_tensor_scalars_are_read_too(tmp_path: Path, maker) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/events.out.tfevents.1").write_bytes(maker.double("train/loss", 1, 0.1))
    assert written(tmp_path, tmp_path / "logs") == {"train/loss": {"1": 0.1}}


def test_a_required_prefix_may_be_of_any_kind_of_tag(tmp_path: Path, maker) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/events.out.tfevents.1").write_bytes(
        maker.scalar("a", 1, 1.0) + maker.image("samples/x", 1)
    )
    assert dump(tmp_path / "logs", "--require-tag-prefix", "samples/").return_value == 0
    result = dump(tmp_path / "logs", "--output_path", tmp_path / "m.json", "--require-tag-prefix", "train/")
    assert result.return_value == 1
    assert "no tag begins with 'train/'" in result.stderr
    assert not (tmp_path / "m.json").exists()


def test_without_event_files(tmp_path: Path) -> None:
    for logs in (tmp_path, tmp_path / "absent"):
        result = dump(logs, "--output_path", tmp_path / "m.json")
        assert result.return_value == 1
        assert "no TensorBoard event files" in result.stderr
    assert not (tmp_path / "m.json").exists()


def test_damage_is_said_and_the_rest_written(tmp_path: Path, maker) -> None:
    (tmp_path / "logs").mkdir()
    bad = bytearray(maker.scalar("a", 2, 2.0))
    bad[30] ^= 1
    path = tmp_path / "logs/events.out.tfevents.1"
    path.write_bytes(maker.scalar("a", 1, 1.0) + bytes(bad) + maker.scalar("a", 3, 3.0))
    result = dump(tmp_path / "logs", "--output_path", tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text()) == {"a": {"1": 1.0, "3": 3.0}}
    assert (
        f"warning: {path} at byte {len(maker.scalar('a', 1, 1.0))}: a record does not match" in result.stderr
    )


def test_an_output_that_cannot_be_written(tmp_path: Path, real_events: Path) -> None:
    result = dump(real_events.parent, "--output_path", tmp_path / "absent/m.json")
    assert "No such file or directory" in str(result.exception)


def test_json_report(tmp_path: Path, maker, snapshot) -> None:
    maker.run(tmp_path / "logs/exp_001/events.out.tfevents.1", range(1, 3), 1e9)
    maker.run(tmp_path / "logs/exp_002/events.out.tfevents.2", range(1, 3), 1e9 + 100, value=lambda s: -s)
    result = dump(tmp_path / "logs", "--json")
    assert result.stdout.replace(str(tmp_path), "") == snapshot


def test_plain_output(tmp_path: Path, maker, snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    maker.run(
        tmp_path / "logs/exp_001/events.out.tfevents.1",
        range(1, 4),
        1e9,
        value=lambda s: [0.5, math.nan, 2][s - 1],
    )
    monkeypatch.chdir(tmp_path)
    result = dump("logs")
    assert "\n".join(line.rstrip() for line in result.stdout.splitlines()) == snapshot


@pytest.mark.parametrize("option", ["--output_path", "--output-path"])
def test_the_option_names_of_the_script(option: str, tmp_path: Path, maker) -> None:
    maker.run(tmp_path / "logs/events.out.tfevents.1", [1], 1e9)
    assert dump(tmp_path / "logs", option, tmp_path / "m.json").return_value == 0
    assert (tmp_path / "m.json").exists()
